"""Run marshalled module code objects, one line of hexadecimal each on standard input, and print a line after each.

With an argument, print instead the marshalled code object of that source file, in hexadecimal.
"""

import marshal
import sys


def main() -> None:
    """Run or compile."""
    if len(sys.argv) > 1:
        with open(sys.argv[1], encoding="utf-8") as file:
            print(marshal.dumps(compile(file.read(), sys.argv[1], "exec")).hex())
        return
    for line in sys.stdin:
        exec(marshal.loads(bytes.fromhex(line)), {"__name__": "program"})
        print("=" * 20)


main()
