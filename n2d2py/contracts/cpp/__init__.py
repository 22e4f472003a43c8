"""Contract of C++: how a layer becomes code."""

from n2d2py.contracts.cpp.arrays import file_bytes, initializer, is_file, is_string, panel_file, storage_of, zero_padded
from n2d2py.contracts.cpp.code import ChosenKernel, LayerCode, Selection
from n2d2py.contracts.cpp.epilogue import converting_epilogue, copy, epilogue, image_axes, move, moving_epilogue
from n2d2py.contracts.cpp.forms.contract import KernelFacts
from n2d2py.contracts.cpp.forms.lanes import ChannelPairs
from n2d2py.contracts.cpp.forms.panels import PRODUCT_TIMES
from n2d2py.contracts.cpp.forms.select import pack, row_dots, row_panels, scratch_of, select, table, vectors
from n2d2py.contracts.cpp.identifiers import Identifiers, comment, float_literal, literal
from n2d2py.contracts.cpp.isa import BYTE_SUMS, MORE_SETS, InstructionSet, register_instruction_set
from n2d2py.contracts.cpp.layer import LAYERS, REPLACED_KERNELS, Layer, cpp, kernel, scratch, scratch_needs, window
from n2d2py.contracts.cpp.parts import Argument, Array, Call, Constants, Expression, LayerForm, Reference
