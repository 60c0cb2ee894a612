#!/usr/bin/env bash
# make gpu-kit: puts what a machine with a GPU but no network needs into .gpu/, which git ignores. 43 MB; the tree itself must be there too,
# or PACK_PROJECT=1 packs it as well. Then, there, in the root of a copy of the tree with .gpu/: bash .gpu/all.sh
set -euo pipefail
kit=$(cd "$(dirname "$0")" && pwd)
mkdir -p .gpu
work=$(mktemp -d)
python=.venv/bin/python
version() { "$python" -c "import importlib.metadata as m; print('$1==' + m.version('$1'))" 2>/dev/null || echo "$1"; }
if [ ! -f .gpu/site.tar.xz ] || [ pyproject.toml -nt .gpu/site.tar.xz ]; then
  platforms=(); for p in manylinux_2_28 manylinux_2_27 manylinux_2_17 manylinux2014 manylinux1; do platforms+=(--platform "${p}_x86_64"); done
  "$python" -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.12 --implementation cp "${platforms[@]}" -d "$work/whl" \
    'llvmlite==0.50.*' 'ml_dtypes>=0.6' "$(version xdsl)" immutabledict ordered-set platformdirs shtab
  for wheel in "$work"/whl/*.whl; do "$python" -m zipfile -e "$wheel" "$work/site"; done
  rm -rf "$work/site/tests" "$work/site/docs"
  tar cf - -C "$work/site" . | xz -T2 -6 >.gpu/site.tar.xz
fi
rm -f .gpu/project.tar.xz
[ -z "${PACK_PROJECT:-}" ] || git archive HEAD xla_emitters examples benchmarks tests pyproject.toml | xz -6 >.gpu/project.tar.xz
mkdir -p "$work/here"
"$python" "$kit/sweep.py" "$work/here/sweep" >/dev/null
cp "$kit"/xla_*.json.gz "$work/here/"
[ -z "${GPU_EXTRA:-}" ] || cp -r "$GPU_EXTRA" "$work/here/extra"
tar cf - -C "$work/here" . | xz -6 >.gpu/here.tar.xz
cp "$kit"/*.py "$kit"/setup.sh "$kit"/all.sh .gpu/
[ -z "${GPU_CASES:-}" ] || cp "$GPU_CASES" .gpu/cases_more.py
rm -rf "$work"
du -ch .gpu/* | tail -1
