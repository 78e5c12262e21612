"""What a training run prints: pure, no clock, the same for the same seed; used by podlogs.py.

Made to exercise a log viewer: progress bars that redraw themselves with carriage returns (on stderr, as tqdm does),
ANSI colours, metrics in columns and as JSON, warnings, a Python traceback when the run fails.
"""

import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

DIM, BOLD, RED, GREEN, YELLOW, CYAN, RESET = (f"\x1b[{code}m" for code in (2, 1, 31, 32, 33, 36, 0))
SETUP_SECONDS = 2.0
STEPS_PER_LINE = 10


@dataclass(frozen=True)
class Run:
    """One container's run. `run_for` is in seconds, None for a run without end; `rank` is that of a parallel job."""

    seed: str
    product: str = ""
    gpus: int = 0
    gpu_memory_gib: int = 0
    rank: int | None = None
    lines_per_second: float = 1.0
    run_for: float | None = None
    exit_code: int = 0


@dataclass(frozen=True)
class Line:
    """One line, `after` seconds from the container's start, on `stream` stdout or stderr; no newline at its end."""

    after: float
    stream: str
    text: str


def run_lines(run: Run) -> Iterator[Line]:
    """All lines of a run in the order of their times: set-up, training, the end. Endless when the run is."""
    last = _last_words_at(run.run_for) if run.run_for is not None else math.inf
    previous = 0.0
    for line in _setup_lines(run) if run.lines_per_second > 0 else ():
        if line.after >= last:
            break
        yield line
        previous = line.after
    if run.lines_per_second > 0:
        for line in _training_lines(run, start=previous):
            if line.after >= last:
                break
            yield line
    if run.run_for is not None:
        yield from _last_words(run, last)


def termination_text() -> str:
    """What the run prints when it is told to stop."""
    return f"{YELLOW}WARN{RESET}  received SIGTERM, stopping after this step"


def _last_words_at(run_for: float) -> float:
    # Before the end, since what a process prints is there before its exit is known.
    return max(run_for - 0.3, run_for * 0.7)


def _setup_lines(run: Run) -> Iterator[Line]:
    pace = SETUP_SECONDS / 8 / max(1.0, run.lines_per_second)
    device = f"{run.gpus} x {run.product}" if run.gpus else "no GPU, training on CPU"
    prefix = _prefix(run)
    texts = [
        ("stdout", f"{BOLD}{CYAN}train.py{RESET} seed={_random(run).randrange(10**6)} rank={run.rank or 0}"),
        ("stdout", f"{prefix}devices: {device}"),
        ("stdout", f"{prefix}precision: bf16, gradient checkpointing on"),
        ("stderr", progress_bar("Loading shards", 64, unit="shard")),
        ("stdout", f"{prefix}model: 6.74 B parameters, 32 layers; optimizer: AdamW(lr=3.0e-04, wd=0.1)"),
        ("stderr", progress_bar("Tokenizing", 100, unit="%")),
        ("stdout", f"{prefix}{GREEN}ready{RESET}, resuming from step 0"),
    ]
    for number, (stream, text) in enumerate(texts):
        yield Line(number * pace, stream, text)


def _training_lines(run: Run, *, start: float) -> Iterator[Line]:
    chance = _random(run)
    number = 0
    while True:
        number += 1
        after = start + number / run.lines_per_second
        step = number * STEPS_PER_LINE
        if number % 40 == 0:
            bar = progress_bar("Evaluating", 50, unit="batch")
            yield Line(after, "stderr", bar)
        elif number % 25 == 0:
            metrics = {"step": step, "eval_loss": round(_loss(step, chance) + 0.05, 4), "perplexity": 9.31}
            yield Line(after, "stdout", json.dumps(metrics))
        elif number % 60 == 11:
            yield Line(
                after,
                "stderr",
                f"{YELLOW}WARN{RESET}  gradient norm {chance.uniform(4, 9):.2f} clipped to 1.00",
            )
        elif number % 100 == 0:
            yield Line(after, "stdout", f"{_prefix(run)}saved checkpoint to /outputs/step-{step:06d}")
        else:
            yield Line(after, "stdout", _metrics(run, step, chance))


def _last_words(run: Run, after: float) -> Iterator[Line]:
    if run.exit_code == 0:
        yield Line(after, "stdout", f"{_prefix(run)}saved checkpoint to /outputs/final")
        yield Line(
            after + 0.001, "stdout", f"{_prefix(run)}{GREEN}training finished{RESET} in {run.run_for:.1f} s"
        )
    elif run.exit_code in (137, 139, 143):
        yield Line(after, "stderr", f"{RED}process was ended by signal {run.exit_code - 128}{RESET}")
    else:
        traceback = (
            "Traceback (most recent call last):",
            '  File "/workspace/train.py", line 412, in <module>',
            "    main(parse_arguments())",
            '  File "/workspace/train.py", line 287, in main',
            "    loss = model(batch).loss / accumulation",
            f"{RED}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.{RESET}",
        )
        for number, text in enumerate(traceback):
            yield Line(after + number / 1000, "stderr", text)


def _metrics(run: Run, step: int, chance: random.Random) -> str:
    rate = 3e-4 * min(1.0, step / 200) * (0.55 + 0.45 * math.cos(min(step / 50_000, 1.0) * math.pi))
    memory = (
        f"{run.gpu_memory_gib * chance.uniform(0.86, 0.91):.1f}/{run.gpu_memory_gib} GiB" if run.gpus else "-"
    )
    return (
        f"{_prefix(run)}step {step:>6} {DIM}|{RESET} loss {GREEN}{_loss(step, chance):.4f}{RESET} {DIM}|{RESET} "
        f"lr {rate:.2e} {DIM}|{RESET} grad {chance.uniform(0.4, 1.1):.2f} {DIM}|{RESET} "
        f"{max(1, run.gpus) * chance.uniform(5.0, 5.4):.1f}k tok/s {DIM}|{RESET} gpu mem {memory}"
    )


def _loss(step: int, chance: random.Random) -> float:
    return 1.9 + 8.6 * math.exp(-step / 350) + chance.gauss(0, 0.02)


def progress_bar(title: str, total: int, *, unit: str) -> str:
    """A finished progress bar as a program leaves it: every redraw after a carriage return, on one line."""
    frames = []
    for percent in range(0, 101, 10):
        bar = ("█" * (percent // 5)).ljust(20)
        frames.append(f"{title}: {percent:>3}%|{bar}| {total * percent // 100}/{total} {unit}")
    return "\r".join(frames)


def _prefix(run: Run) -> str:
    return f"[rank {run.rank}] " if run.rank is not None else ""


def _random(run: Run) -> random.Random:
    return random.Random(run.seed)
