"""A copy of the program in which dialects declare one more field, and nothing else is changed."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import paddock

ROOT = Path(__file__).parents[3]
FIELD = '    tint: Annotated[str | None, Field("A field that no translator knows.")] = None\n'
# file of the package -> class that gets the field
DECLARATIONS = (
    ("dialects/vitistack/kinds/fields.py", "MachineCpu"),
    ("dialects/vitistack/kinds/fields.py", "MachineDisk"),
    ("dialects/vitistack/kinds/networkconfiguration.py", "NetworkConfigurationSpec"),
    ("dialects/stakater/kinds/fields.py", "CpuTopology"),
    ("dialects/stakater/kinds/virtualmachine.py", "StakaterMachineSpec"),
    ("dialects/virtrigaud/kinds/shared.py", "ObjectRef"),
    ("dialects/virtrigaud/kinds/vmclass.py", "VMClassSpec"),
    ("kubevirt/kinds/datasource.py", "DataSourceSpec"),
    ("kubevirt/kinds/devices.py", "Disk"),
    ("kubevirt/kinds/domain.py", "CPU"),
    ("kubevirt/kinds/instance.py", "VirtualMachineInstanceSpec"),
)


def copied(folder: Path) -> Path:
    """Make the copy in a folder."""
    package = Path(paddock.__file__).parent
    # With the bytecode, which is valid for every file that stays as it is.
    shutil.copytree(package, folder / "paddock")
    for file, cls in DECLARATIONS:
        declared = folder / "paddock" / file
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
