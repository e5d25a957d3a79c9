"""A copy of the program in which dialects declare one more field, and nothing else is changed."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import paddock

ROOT = Path(__file__).parents[1]
FIELD = '    tint: Annotated[str | None, Field("A field that no translator knows.")] = None\n'
# file of the dialects -> class that gets the field
DECLARATIONS = (
    ("vitistack/fields.py", "MachineCpu"),
    ("vitistack/fields.py", "MachineDisk"),
    ("vitistack/networkconfiguration.py", "NetworkConfigurationSpec"),
    ("stakater/fields.py", "CpuTopology"),
    ("stakater/virtualmachine.py", "StakaterMachineSpec"),
    ("virtrigaud/shared.py", "ObjectRef"),
    ("virtrigaud/vmclass.py", "VMClassSpec"),
    ("kubevirt/datasource.py", "DataSourceSpec"),
    ("kubevirt/devices.py", "Disk"),
    ("kubevirt/domain.py", "CPU"),
    ("kubevirt/instance.py", "VirtualMachineInstanceSpec"),
)


def copied(folder: Path) -> Path:
    """Make the copy in a folder."""
    package = Path(paddock.__file__).parent
    # With the bytecode, which is valid for every file that stays as it is.
    shutil.copytree(package, folder / "paddock")
    for file, cls in DECLARATIONS:
        declared = folder / "paddock/dialects" / file
        parts = re.split(rf"(\nclass {cls}\(\w+\):\n)", declared.read_text(), maxsplit=1)
        assert len(parts) == 3, (file, cls)
        before, head, after = parts
        docstring, gap, members = after.partition("\n\n")
        declared.write_text(f"{before}{head}{docstring}{gap}{FIELD}{members}")
    return folder


def run(copy: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the copy."""
    environment = {"PYTHONPATH": f"{copy}:{ROOT}", "PATH": "/usr/bin:/bin", "HOME": str(copy)}
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
