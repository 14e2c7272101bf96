package main

import "context"

// openMPI is a program of ours that compares what it moves, over libfabric.
func openMPI() []row {
	rows := []row{
		{name: "Open MPI, verbs;ofi_rxm: ring, allreduce, put and get, compared, 2 ranks", scene: mpiScene("2")},
		{name: "Open MPI, verbs;ofi_rxm: ring, allreduce, put and get, compared, 4 ranks", scene: mpiScene("4")},
	}
	for i := range rows {
		rows[i].pkg, rows[i].personas, rows[i].flags = "openmpi-bin libopenmpi-dev", both, "--verbose"
		rows[i].needs = []string{"mpirun", "mpicc"}
	}
	return rows
}

func mpiScene(ranks string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		if err := s.compile(ctx, "mpicc", "mpi"); err != nil {
			return err
		}
		s.env = append(s.env, "OMPI_MCA_plm=isolated")
		p, err := s.start("mpirun", "mpirun --oversubscribe -np "+ranks+
			" --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs;ofi_rxm --mca btl self,vader {dir}/mpi")
		if err != nil {
			return err
		}
		if err := p.wait(ctx, "ring, allreduce, put and get are equal"); err != nil {
			return err
		}
		return p.used()
	}
}
