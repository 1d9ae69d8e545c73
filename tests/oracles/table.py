"""Print how far our losses and gradients lie from TRL's: python -m tests.oracles.table"""

import warnings

from tests.oracles.cases import CASES


def main() -> None:
    print("| case | TRL's value | difference | TRL's largest gradient | largest difference |")
    print("|---|---:|---:|---:|---:|")
    for name, case in CASES.items():
        found = case()
        gradient = f"{found.gradient:.4f} | {found.gradient_difference:.1e}" if found.gradient else "- | -"
        print(f"| {name} | {found.value:.6f} | {found.value_difference:.1e} | {gradient} |")


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # TRL's, of its own deprecated and experimental parts
    main()
