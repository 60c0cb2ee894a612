"""Devices in processes of their own: a job of processes, and how their arrays go from one to another.

    jobs     who takes part: rank, size, what all of them say; started by mpirun, or by any launcher that sets RANK and WORLD_SIZE
    mpi      arrays of processes, by MPI
    nccl     arrays of GPUs, one for each process, by NCCL

Devices in one process are threads: `runtime/devices`. All three are an `Exchange` of `library/devices`, over which collectives are written
once.
"""
