"""Files: of those that come from elsewhere, regular ones only are read, their sizes checked before; names; texts."""

from n2d2py.files.arrays import DamagedArray, map_npy, map_npz, read_npy, read_npz
from n2d2py.files.names import file_names, marked_file_name, plain_file_name
from n2d2py.files.pictures import open_picture
from n2d2py.files.regular import finite, json_text, open_regular, read_regular, write_text
