"""The rules of ARCHITECTURE.md that a machine can check: sizes here, who imports whom in `.importlinter`."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    path
    for folder in ("portal", "tenants", "jobs", "deploy", "tests")
    for path in (ROOT / folder).rglob("*.py")
    if "migrations" not in path.parts
)
MODULE_LINES, FUNCTION_LINES = 500, 60
NAMES_THAT_SAY_NOTHING = {
    "utils",
    "util",
    "helpers",
    "common",
    "base",
    "manager",
    "service",
    "misc",
    "signals",
}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_modules_and_functions_stay_readable(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MODULE_LINES
    too_long = [
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES
    ]
    assert too_long == []


def test_no_module_of_the_product_has_a_name_that_says_nothing() -> None:
    product = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in ("portal", "tenants", "jobs")]
    assert product
    assert [name_of(path) for path in product if path.stem in NAMES_THAT_SAY_NOTHING] == []


def test_nothing_in_the_tree_switches_off_the_check_of_certificates() -> None:
    skips = re.compile(r"insecure-skip-tls-verify|verify\s*=\s*False|verify_ssl\s*=\s*False|CERT_NONE")
    found = [name_of(path) for path in SOURCES if path != Path(__file__) and skips.search(path.read_text())]
    assert found == []


def test_imports_follow_the_contracts() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    checked = subprocess.run([lint], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert checked.returncode == 0, checked.stdout
