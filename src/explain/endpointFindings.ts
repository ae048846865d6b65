/** Why a service port has no endpoint to go to, and what is noteworthy about those that it has. */
import type { ServicePort } from '../model/serviceTracker.ts';
import type { PoolName } from '../plan/types.ts';
import type { PortEndpoints } from './endpoints.ts';
import { countOf, errorFinding, info, kubectl, listed, listSlices, warning } from './finding.ts';
import type { Finding } from './types.ts';

/** No endpoint can be used, on any node. */
export function noEndpoints(port: ServicePort, endpoints: PortEndpoints): Finding {
  const { service, name } = port;
  const consequence = 'Connections are refused.';
  const [unusable] = endpoints.unusable;
  if (endpoints.all.length > 0) return noneReady(port, endpoints);
  if (unusable?.reason === 'no-such-port')
    return errorFinding('no-such-port', `no endpoint of ${service} has the ${portWords(port)}`, {
      evidence: `${countOf(endpoints.unusable.length, 'endpoint')} without it, such as ${unusable.endpoint.ip}`,
      consequence,
      cure: `Give a container of the pods a port with the name that spec.ports[].targetPort has: ${kubectl(service, (each) => `get service ${each} -o yaml`)}`,
    });
  if (unusable)
    return errorFinding('other-family', `${service} has endpoints of the other address family only`, {
      evidence: `${countOf(endpoints.unusable.length, 'endpoint')}, such as ${unusable.endpoint.ip}`,
      consequence,
      cure: `Have its pods get addresses of both families, or dial the other cluster IP: ${kubectl(service, (each) => `get service ${each} -o jsonpath={.spec.clusterIPs}`)}`,
    });
  const what =
    endpoints.sliceCount === 0
      ? `no EndpointSlice belongs to ${service}: its selector matches no pod, or it has none`
      : `the EndpointSlices of ${service} are empty: its selector matches no pod`;
  return errorFinding('no-endpoints', what, {
    evidence: `${name} has no endpoints`,
    consequence,
    cure: `Compare the selector with the labels of the pods: ${kubectl(service, (each) => `get service ${each} -o jsonpath={.spec.selector}; ${kubectl(service, () => 'get pods --show-labels')}`)}`,
  });
}

function noneReady({ service }: ServicePort, { all }: PortEndpoints): Finding {
  const notReady = all.filter(({ terminating }) => !terminating).length;
  const terminating = all.length - notReady;
  const parts = [
    ...(notReady > 0 ? [`${notReady} not ready`] : []),
    ...(terminating > 0 ? [`${terminating} terminating`] : []),
  ];
  const what =
    all.length === 1
      ? `the one endpoint of ${service} is ${notReady > 0 ? 'not ready' : 'terminating'}`
      : `none of the ${countOf(all.length, 'endpoint')} of ${service} is ready (${parts.join(', ')})`;
  return errorFinding('none-ready', what, {
    consequence: 'Connections are refused.',
    cure: `See why the pods are not ready: ${kubectl(service, () => 'get pods -o wide')}; ${kubectl(service, () => 'describe pods')}`,
  });
}

function terminatingWords(count: number): string {
  return count === 1
    ? '1 terminating one that still serves is'
    : `${count} terminating ones that still serve are`;
}

function portWords({ portName, protocol }: ServicePort): string {
  return portName === '' ? `${protocol} port without a name` : `${protocol} port ${portName}`;
}

/** What is noteworthy where there are endpoints. */
export function poolFindings(
  port: ServicePort,
  endpoints: PortEndpoints,
  pool: PoolName,
): readonly Finding[] {
  const findings: Finding[] = [];
  const terminating = endpoints.terminatingIn(pool);
  if (terminating.length > 0)
    findings.push(
      warning(
        'terminating-used',
        `no endpoint${pool === 'local' ? ' on this node' : ''} is ready: ${terminatingWords(terminating.length)} used`,
        {
          evidence: listed(terminating.map(({ key }) => key)),
          consequence: 'Connections end when these pods do.',
          cure: `See why no other pod is ready: ${kubectl(port.service, () => 'get pods -o wide')}`,
        },
      ),
    );
  const hints = pool === 'cluster' ? endpoints.ignoredHints() : undefined;
  if (hints)
    findings.push(
      info('hints-ignored', `${hints.kind} hints of the endpoints are ignored: ${hints.why}`, {
        consequence: 'Endpoints of all zones are used, also far ones.',
        cure: `See which endpoints have hints: ${listSlices(port.service)} -o yaml`,
      }),
    );
  return findings;
}
