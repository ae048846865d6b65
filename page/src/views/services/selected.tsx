/** All that the table knows of the selected service, with what there was no room for. */
import type { ServiceState } from '../../../../src/explain/types.ts';
import { grouped } from '../../../../src/text/ages.ts';
import { Badge } from '../../parts/badge.tsx';
import { CopyButton } from '../../parts/copyButton.tsx';
import { servicePath } from '../../route.ts';
import { cellsOf, type ServiceLine } from './line.ts';

export function SelectedService({
  line,
  onClose,
}: {
  readonly line: ServiceLine;
  readonly onClose: () => void;
}) {
  const { clusterIPs, otherIPs, ports, affinity, detail } = cellsOf(line);
  return (
    <section class="services-selected" aria-label="Selected service">
      <a class="services-open" href={servicePath(line.service)}>
        {line.service}
      </a>
      <dl>
        <Addresses name="Cluster IP" addresses={clusterIPs} />
        <Addresses name="Other IPs" addresses={otherIPs} />
        <Fact name="Ports" text={ports.join(', ')} />
        <Fact
          name="Endpoints"
          text={`${grouped(line.ready)} ready, ${grouped(line.local)} local, ${grouped(line.all)} in all`}
        />
        <Fact name="Policy" text={line.kind.policy} />
        <Fact name="Affinity" text={affinity} />
        <div class="services-state">
          <dt class="visually-hidden">State</dt>
          <dd>
            <Badge state={line.kind.state as ServiceState} /> {detail}
          </dd>
        </div>
      </dl>
      <button type="button" class="round" aria-label="Close" onClick={onClose}>
        ×
      </button>
    </section>
  );
}

function Fact({ name, text }: { readonly name: string; readonly text: string }) {
  if (text === '') return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{text}</dd>
    </div>
  );
}

function Addresses({ name, addresses }: { readonly name: string; readonly addresses: readonly string[] }) {
  if (addresses.length === 0) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {addresses.map((address) => (
          <span key={address} class="services-address">
            <span class="mono">{address}</span>
            <CopyButton text={address} />
          </span>
        ))}
      </dd>
    </div>
  );
}
