"""same_text.py A B: fails unless two IR texts agree up to comments, locations and the names of values."""
import difflib
import re
import sys


def normalised(path):
    lines = []
    for line in open(path):
        if line.startswith(("//", "#loc")) or not line.strip():
            continue
        line = re.sub(r' loc\((?:"[^"]*"\()?#?[^()]*\)?\)', "", line)
        lines.append(re.sub(r"%[A-Za-z0-9_]+", "%", line))
    return lines


difference = list(difflib.unified_diff(*map(normalised, sys.argv[1:3]), *sys.argv[1:3]))
sys.stdout.writelines(difference)
sys.exit(bool(difference))
