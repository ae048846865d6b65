/** Raw ServiceCIDR → `ServiceCidr`: a range that cluster IPs come from. */
import { type Cidr, parseCidr } from '../../model/ip.ts';
import type { Projection } from '../../model/problem.ts';
import { project } from '../../model/project/cursor.ts';
import { readName, SUBDOMAIN } from '../../model/project/names.ts';
import { quote } from '../../model/project/quote.ts';
import { readText } from '../../model/project/read.ts';

export interface ServiceCidr {
  readonly name: string;
  readonly cidrs: readonly Cidr[];
}

export function projectServiceCidr(raw: unknown): Projection<ServiceCidr> {
  return project(raw, (root) => ({
    name: readName(root.map('metadata').field('name'), SUBDOMAIN),
    cidrs: root
      .map('spec')
      .list('cidrs')
      .flatMap((at) => {
        const text = readText(at);
        const cidr = parseCidr(text);
        if (cidr === undefined) at.warn(`${quote(text)} is not a CIDR`, 'a CIDR such as 10.96.0.0/16');
        return cidr ?? [];
      }),
  }));
}
