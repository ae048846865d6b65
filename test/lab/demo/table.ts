/** The table of requests that the demo prints, in every mode. */
import { expect } from 'vitest';

/** `ownNodePort`: where node1 itself dials a node port, which not every mode answers on 127.0.0.1. */
export function expectTable(output: string, ownNodePort = '127.0.0.1'): void {
  const rows = [
    /✓ {2}pod-b +api cluster IP +10\.96\.0\.10:80 +pod-.* 10\.244\.1\.12 \(its own\)/,
    /✓ {2}client +shopfront node port +192\.0\.2\.1:30080 +pod-.* \(masqueraded\)/,
    new RegExp(`✓ {2}node1 +shopfront node port +${ownNodePort.replaceAll('.', String.raw`\.`)}:30080 +pod-`),
    /✓ {2}client +shopfront external IP +198\.51\.100\.20:80 +pod-.* \(masqueraded\)/,
    /✓ {2}client +web load balancer +203\.0\.113\.10:80 +pod-a ×12 +192\.0\.2\.10 \(its own\)/,
    /✓ {2}far client +web load balancer +203\.0\.113\.10:80 +no answer ×2 +– source not allowed/,
    /✓ {2}pod-b +cart cluster IP +10\.96\.0\.40:80 +pod-[acd] ×12 /,
    /✓ {2}pod-b +dns cluster IP \(UDP\) +10\.96\.0\.53:53 +pod-/,
    /✓ {2}pod-b +catalog cluster IP +\[fd00:96::60\]:80 +pod-/,
    /✓ {2}pod-b +idle cluster IP +10\.96\.0\.70:80 +refused ×12 +– no endpoints/,
  ];
  for (const row of rows) expect(output).toMatch(row);
}
