/** A rule as a save prints it: addresses first, with their masks. */
import { probabilityBits } from '../../../../src/modes/iptables/rules/words.ts';

export function asSaved(text: string): string {
  const addresses: string[] = [];
  const rest = text.replaceAll(/(?<=^| )((?:! )?-[sd]) (\S+) ?/g, (_, option: string, ip: string) => {
    addresses.push(`${option} ${ip.includes('/') ? ip : `${ip}/${ip.includes(':') ? 128 : 32}`}`);
    return '';
  });
  const probability = rest.replace(
    /--probability (\S+)/,
    (_, given: string) => `--probability ${(probabilityBits(given) / 2 ** 31).toFixed(11)}`,
  );
  return [...addresses.sort(sourceFirst), probability].join(' ').trim();
}

function sourceFirst(a: string, b: string): number {
  return Number(b.includes('-s ')) - Number(a.includes('-s '));
}
