/**
 * `junction plan --output script`: a POSIX shell script that applies the plan beside other programs' rules. Run again,
 * it leaves the same. Why not the text alone: docs/decisions/0029-what-plan-prints-can-be-applied-again.md.
 */
import { DEVICE, type IpvsText } from '../modes/ipvs/rules/print.ts';
import { TABLES } from '../modes/iptables/rules/incremental.ts';
import type { TableRule, WholeRules } from '../modes/iptables/rules/whole.ts';
import type { Settings } from '../config/index.ts';
import type { Family } from '../model/ip.ts';
import { printableLine } from '../text/printable.ts';

/** Nothing that is printed begins a line with it. */
const END = 'JUNCTION';

/** From the commands of each family. */
export function printScript(
  { nodeName, mode }: Settings,
  families: readonly Family[],
  commands: readonly string[],
): string {
  const needs = NEEDS[mode];
  return `#!/bin/sh
# ${printableLine(`Node ${nodeName}, ${mode} mode, ${families.join(' and ')}`)}. As root: junction plan ... --output script | sh
# Run again, it leaves the same. Rules of other programs stay. What is there of Services that are gone: junction cleanup.
set -eu
${needs}
apply() {
${commands.join('\n')}}

# Last, so that a script that is cut off does nothing.
apply
`;
}

/** The jumps are those of the layouts, so what eval reads is written in this program. */
const IPTABLES = `: "\${IPTABLES:=iptables}" "\${IP6TABLES:=ip6tables}"

# PROGRAM TABLE: jumps at the head of the kernel's chains. Their order counts, so if one is missing, all are inserted again.
jumps() {
  rules=$(cat)
  missing=
  while read -r rule; do eval "$1 -w -t $2 -C $rule" 2> /dev/null || missing=yes; done <<RULES
$rules
RULES
  [ "$missing" ] || return 0
  while read -r rule; do
    while eval "$1 -w -t $2 -D $rule" 2> /dev/null; do :; done
  done <<RULES
$rules
RULES
  { echo "*$2"; echo "$rules" | sed 's/^/-I /'; echo COMMIT; } | "$1-restore" -w 5 --noflush
}
`;
/**
 * `ipvsadm --restore` has no word for "unless it is there": an added server that exists is an error, and so is one
 * that is edited and does not exist. So what is there decides which it is.
 */
const SERVERS = `
# Reads what is there, an empty line, and what is planned.
servers() {
  awk '
    /^$/ { planned = 1; next }
    { id = $2 " " $3; if ($1 == "-a") id = id " -r " $5 }
    !planned { there[id] = $1; next }
    { kept[id] = 1; print (id in there ? ($1 == "-A" ? "-E" : "-e") : $1) substr($0, 3) }
    END {
      for (id in there) {
        split(id, word, " ")
        if (there[id] == "-a" && !(id in kept) && ((word[1] " " word[2]) in kept)) print "-d " id
      }
    }' | ipvsadm --restore
}
`;

const NEEDS: Readonly<Record<Settings['mode'], string>> = {
  iptables: IPTABLES,
  ipvs: IPTABLES + SERVERS,
  nftables: '',
};

export function nftCommands(text: string): string {
  return withInput('nft -f -', text);
}

export function ipvsCommands(family: Family, rules: WholeRules, { ipset, ipvsadm, ip }: IpvsText): string {
  const [link = '', ...addresses] = ip.split(/(?<=\n)/);
  return [
    withInput('ipset restore -exist', ipset),
    `{\nipvsadm --save --numeric\necho\n${withInput('cat', ipvsadm)}} | servers\n`,
    iptablesCommands(family, rules),
    `ip link show dev ${DEVICE} > /dev/null 2>&1 || ip ${link}`,
    withInput('ip -batch -', addresses.join('')),
  ].join('');
}

export function iptablesCommands(family: Family, rules: WholeRules): string {
  const program = family === 'IPv4' ? '$IPTABLES' : '$IP6TABLES';
  const on = ({ table, chain }: Omit<TableRule, 'rule'>, operation: string, rule = ''): string =>
    `"${program}" -w -t ${table} ${operation} ${chain}${rule === '' ? '' : ` ${rule}`}`;
  return [
    ...rules.sharedChains.map((ref) => `${on(ref, '-N')} 2> /dev/null || :\n`),
    ...rules.sharedRules.map(
      (each) => `${on(each, '-C', each.rule)} 2> /dev/null ||\n  ${on(each, '-A', each.rule)}\n`,
    ),
    withInput(`"${program}-restore" -w 5 --noflush`, rules.restore),
    ...TABLES.map((table) => {
      const jumps = rules.jumps.filter((jump) => jump.table === table);
      if (jumps.length === 0) return '';
      const rulesText = jumps.map(({ chain, rule }) => `${chain} ${rule}\n`).join('');
      return withInput(`jumps "${program}" ${table}`, rulesText);
    }),
  ].join('');
}

/** Quoted, so the shell takes the text as it is. */
function withInput(command: string, text: string): string {
  return `${command} <<'${END}'\n${text}${END}\n`;
}
