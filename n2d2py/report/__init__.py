"""Everything under `statistics/` of an export: tables, images, and the page that shows them."""

from n2d2py.report.comparison import comparison_text, sensitivity_advice, sensitivity_csv, sensitivity_text, worst_text
from n2d2py.report.data import Footprint, InputImage, ReportData
from n2d2py.report.in_float import float_layers_in, float_layers_text, float_shares
from n2d2py.report.layers import describe_text
from n2d2py.report.page import MISSES_SHOWN, write_report
