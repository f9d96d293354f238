"""Run the code blocks of a Markdown file in order: `bash` blocks in a shell, `python` blocks in one interpreter each."""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main(path):
    text = Path(path).read_text(encoding="utf-8")
    root = Path(path).resolve().parent
    environment = {**os.environ, "PATH": f"{root / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    if "BAYESID_DATA" in environment:
        environment["BAYESID_DATA"] = str(Path(environment["BAYESID_DATA"]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        for number, (language, code) in enumerate(BLOCK.findall(text), 1):
            if "python3 -m venv" in code:
                continue
            line = text[: text.index(code)].count("\n") + 1
            command = ["bash", "-euo", "pipefail", "-c", code] if language == "bash" else [sys.executable, "-c", code]
            start = time.monotonic()
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
            print(f"README block {number} (line {line}, {language}): exit {done.returncode}, {time.monotonic() - start:.0f} s")
            if done.returncode:
                print(code, done.stdout[-3000:], done.stderr[-3000:], sep="\n")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
