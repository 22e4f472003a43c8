"""The NVDLA export: a loadable for NVIDIA's Deep Learning Accelerator."""
