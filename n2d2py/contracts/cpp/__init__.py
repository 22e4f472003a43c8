"""Contract of C++: how a layer becomes code."""

from n2d2py.contracts.cpp.code import LayerCode
from n2d2py.contracts.cpp.epilogue import converting_epilogue, copy, epilogue, image_axes, move, moving_epilogue
from n2d2py.contracts.cpp.forms.contract import KernelFacts
from n2d2py.contracts.cpp.forms.select import pack, row_dots, row_panels, scratch_of, select, table, vectors
from n2d2py.contracts.cpp.isa import BYTE_SUMS, FAMILIES, MORE_SETS, InstructionSet, dispatched, register_instruction_set
from n2d2py.contracts.cpp.layer import LAYERS, REPLACED_KERNELS, ExportChoices, Layer, cpp, kernel, layer_code, window
from n2d2py.contracts.cpp.packing import zero_padded
from n2d2py.contracts.cpp.parts import Argument, Array, Call, Constants, Expression, LayerForm, Reference
from n2d2py.contracts.cpp.scratch import scratch, scratch_needs
from n2d2py.contracts.cpp.text import comment, literal
