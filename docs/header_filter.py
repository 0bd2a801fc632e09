"""What Doxygen reads for td.h: its columns of names and meanings are lists there, line for line."""
import re
import sys

ITEM = re.compile(r'^( \* +)("[^"]*"|[A-Za-z_.][\w.\[\], ]*?)  +(\S.*)$')


def main():
    inside, in_list = False, False
    for line in open(sys.argv[1], encoding="utf-8"):
        inside = inside or line.lstrip().startswith("/**")
        item = ITEM.match(line) if inside else None
        if item:
            # The list's own column, whatever the indentation was: deeper text would be code.
            line, in_list = f" *  - `{item[2].strip()}`: {item[3]}\n", True
        elif in_list and re.match(r" \* {6,}\S", line):
            line = " *    " + line.strip(" *\n") + ("*/" if line.rstrip().endswith("*/") else "") + "\n"
        else:
            in_list = False
        inside = inside and "*/" not in line
        sys.stdout.write(line)


if __name__ == "__main__":
    main()
