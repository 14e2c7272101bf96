module example.test/fixture
