"""Commands arrive exactly as given (RW-036)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.argv import CommandError, container_argv, escape_dollars, join_command, split_command
from jobs.state import CommandMode

pytestmark = pytest.mark.unit


def expand(text: str) -> str:
    """What the kubelet makes of an argument, by its documented rule: `$$` is `$`, `$(NAME)` a variable."""
    out, index = [], 0
    while index < len(text):
        if text[index] == "$" and text[index + 1 : index + 2] == "$":
            out.append("$")
            index += 2
        elif text[index] == "$" and text[index + 1 : index + 2] == "(" and ")" in text[index:]:
            out.append("EXPANDED")
            index = text.index(")", index) + 1
        else:
            out.append(text[index])
            index += 1
    return "".join(out)


def test_rw_036_a_command_line_is_split_like_a_shell_splits_it() -> None:
    line = """python train.py --name "run one" --tag 'it''s' --expr a\\ b"""
    assert split_command(line) == [
        "python",
        "train.py",
        "--name",
        "run one",
        "--tag",
        "its",
        "--expr",
        "a b",
    ]


@pytest.mark.parametrize("line", ["echo 'open", 'echo "open', "echo \\"])
def test_rw_036_unbalanced_quotes_are_an_error_in_words(line: str) -> None:
    with pytest.raises(CommandError, match=r"quote|backslash"):
        split_command(line)


@pytest.mark.parametrize("argument", ["print('x\"y', '$(HOME)', '$$')", "", " ", "$", "$$$(A)$", "a\tb\n"])
def test_rw_036_kubernetes_expands_nothing(argument: str) -> None:
    assert expand(escape_dollars(argument)) == argument


@given(st.text())
def test_rw_036_any_argument_survives_the_kubelet(argument: str) -> None:
    assert expand(escape_dollars(argument)) == argument


@given(st.lists(st.text(), max_size=6))
def test_the_shown_command_line_is_what_runs(argv: list[str]) -> None:
    assert split_command(join_command(argv)) == argv


def test_rw_036_a_script_is_one_untouched_argument() -> None:
    script = 'echo "pid $$ home $HOME"; echo \'$(date)\'; echo "a\tb"\n'
    assert container_argv(CommandMode.SCRIPT, (), script) == ("/bin/sh", "-c", script)
