"""Write all generated files of the documentation.

Run from the project's root: python -m tools.docs
"""

from __future__ import annotations

from tools.docs.generated import generated_files

if __name__ == "__main__":
    for path, text in generated_files().items():
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(path)
