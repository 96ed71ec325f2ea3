"""A functional model of the Ethos-U55 and U65: it executes what Vela compiled, on the host and without a board.

It follows the documented numerics and TFLite's reference kernels; none of it was compared with silicon by us.
"""

from vitrify.runtimes.npusim.compiled import Program, read_program
from vitrify.runtimes.npusim.oracle import oracle
from vitrify.runtimes.npusim.runtime import NpuSim
from vitrify.runtimes.npusim.simulating import Simulator, outputs_of

__all__ = ["NpuSim", "Program", "Simulator", "oracle", "outputs_of", "read_program"]
