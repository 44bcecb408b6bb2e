"""Start the kernel: `python -m crush_kernel.kernel -f connection.json`."""

from crush_kernel.kernel.app import CrushApp

if __name__ == "__main__":
    CrushApp.launch_instance()
