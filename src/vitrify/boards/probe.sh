#!/bin/sh
# Tells what a board is, for `vitrify doctor --from-file`. Reads only; needs nothing but BusyBox.
# Run it on the board as  sh probe.sh > board.txt  or paste it into a terminal and save what it prints.
# Each fact stands between two marks, so that prompts, colours and broken lines around it do no harm.
ROOT=${VITRIFY_PROBE_ROOT:-}
LC_ALL=C
export LC_ALL
N=0
say() {
  N=$((N + 1)) KEY_=$1
  case $1 in *[!A-Za-z0-9._:/+@,-]*) KEY_=$(printf '%s' "$1" | tr -c 'A-Za-z0-9._:/+@,-' '_' | cut -c1-200) ;; esac
  printf '<vt %s|%s vt>\n' "$KEY_" "$(printf '%s' "$2" | tr '\n\r\t<>' '   ()' | cut -c1-400)"
}
text() { [ -r "$ROOT$2" ] && say "$1" "$(tr '\000' ' ' < "$ROOT$2" 2>/dev/null | head -n 5)"; }
there() { if [ -e "$ROOT$1" ]; then say "path:$1" "there"; else say "path:$1" "-"; fi; }
file() {
  if [ -f "$ROOT$1" ]; then say "file:$1" "$(wc -c < "$ROOT$1" 2>/dev/null | tr -d ' ') $(readlink "$ROOT$1" 2>/dev/null)"
  elif [ -e "$ROOT$1" ]; then say "file:$1" "0"; else say "file:$1" "-"; fi
}
each() { K=0; for P in "$@"; do [ -f "$P" ] || continue; K=$((K + 1)); [ $K -gt 40 ] && break; file "${P#"$ROOT"}"; done; }
say probe 1
for KEY in ID NAME VERSION VERSION_ID PRETTY_NAME BUILD_ID; do
  say "os.$KEY" "$(sed -n "s/^$KEY=//p" "$ROOT/etc/os-release" 2>/dev/null | head -n 1 | tr -d '"')"
done
text kernel /proc/sys/kernel/osrelease
text kernel.build /proc/sys/kernel/version
say machine "$(uname -m 2>/dev/null)"
for KEY in family soc_id revision machine; do text "soc.$KEY" "/sys/devices/soc0/$KEY"; done
text dt.model /proc/device-tree/model
text dt.compatible /proc/device-tree/compatible
for P in /usr/lib/libethosu_delegate.so /usr/lib/libneutron_delegate.so /usr/lib/libNeutronDriver.so \
  /usr/lib/libvx_delegate.so /lib/firmware/ethosu_firmware /lib/firmware/NeutronFirmware.elf \
  /lib/firmware/NeutronKernels.bin /usr/bin/vela; do file "$P"; done
each "$ROOT"/usr/lib/libtensorflow-lite.so* "$ROOT"/usr/lib/libtensorflowlite*.so* "$ROOT"/usr/lib/libonnxruntime.so* \
  "$ROOT"/usr/lib/libethosu.so* "$ROOT"/usr/lib/liblitert*.so "$ROOT"/usr/lib/libOpenVX.so* \
  "$ROOT"/lib/firmware/*ethosu* "$ROOT"/lib/firmware/*eutron*
for P in "$ROOT"/usr/bin/tensorflow-lite-*; do [ -d "$P" ] && say "tflite:${P##*/tensorflow-lite-}" "/usr/bin/${P##*/}"; done
for P in /dev/ethosu0 /dev/neutron0 /dev/galcore /dev/dma_heap /sys/kernel/debug/neutron; do there "$P"; done
for P in "$ROOT"/dev/dma_heap/*; do [ -e "$P" ] && say "heap:${P##*/}" "there"; done
for KEY in MemTotal MemAvailable CmaTotal CmaFree; do
  say "memory.$KEY" "$(sed -n "s/^$KEY: *\([0-9]*\) kB.*/\1/p" "$ROOT/proc/meminfo" 2>/dev/null | head -n 1)"
done
say modules "$(awk '$1 ~ /ethosu|neutron|galcore|imx_rproc|uiodma/ && n++ < 40 {printf "%s ", $1}' "$ROOT/proc/modules" 2>/dev/null)"
for P in "$ROOT"/proc/device-tree/*neutron* "$ROOT"/proc/device-tree/*/*neutron* "$ROOT"/proc/device-tree/*/*/*neutron* \
  "$ROOT"/proc/device-tree/*ethosu* "$ROOT"/proc/device-tree/*/*ethosu*; do
  [ -d "$P" ] && say "node:${P#"$ROOT"/proc/device-tree}" "$(tr -d '\000' < "$P/status" 2>/dev/null)"
done
for P in "$ROOT"/sys/class/remoteproc/*; do
  [ -r "$P/state" ] && say "remoteproc:${P##*/}" "$(cat "$P/name" 2>/dev/null) $(cat "$P/state" 2>/dev/null) $(cat "$P/firmware" 2>/dev/null)"
done
for P in "$ROOT"/usr/lib/python3*/site-packages/*.dist-info "$ROOT"/usr/lib/python3*/site-packages/*.egg-info \
  "$ROOT"/usr/local/lib/python3*/*-packages/*.dist-info; do
  case "${P##*/}" in
    ethos*|tflite*|tensorflow*|onnxruntime*|numpy-*|ai_edge*|eiq*|vitrify*) say "python:${P##*/}" "there" ;;
  esac
done
packages() { awk '/^Package: /{p=$2} /^Version: /{if (p ~ /(ethos|neutron|tensorflow-lite|tflite|onnxruntime|nn-imx|imx-gpu-viv|kernel-image)/ && n++ < 60) print p, $2}' "$1" 2>/dev/null; }
LIST=$( { packages "$ROOT/var/lib/opkg/status"; packages "$ROOT/var/lib/dpkg/status"
  if [ -z "$ROOT" ] && command -v rpm >/dev/null 2>&1; then
    rpm -qa --qf '%{NAME} %{VERSION}\n' 2>/dev/null | grep -E 'ethos|neutron|tensorflow-lite|tflite|onnxruntime|nn-imx|imx-gpu-viv' | head -n 60
  fi; } )
OLD=$IFS
IFS='
'
for LINE in $LIST; do say "package:${LINE%% *}" "${LINE#* }"; done
IFS=$OLD
say disk.root "$(df -Pk "$ROOT/" 2>/dev/null | sed -n '2s/^[^ ]* *[0-9]* *[0-9]* *\([0-9]*\) .*/\1/p')"
say disk.tmp "$(df -Pk "$ROOT/tmp" 2>/dev/null | sed -n '2s/^[^ ]* *[0-9]* *[0-9]* *\([0-9]*\) .*/\1/p')"
text governor /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor
say end "$((N + 1))"
