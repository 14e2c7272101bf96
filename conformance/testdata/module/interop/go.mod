module example.test/fixture/interop
