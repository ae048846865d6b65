/** Everything from a Kubernetes API server, started as kube-proxy is started. */
import { createConnection } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ServiceExplanation } from '../../src/explain/types.ts';
import { useLab } from '../lab/requireLab.ts';
import { certificatePath } from '../support/apiServer/index.ts';
import { ApiNode, TOKEN } from './support/api/apiNode.ts';
import { applied } from './support/applied.ts';
import { ask, askFor } from './support/ask.ts';
import { eventually } from './support/eventually.ts';
import { type Answer, tryFetch } from './support/fetch.ts';
import { ourRules, ourServiceRules } from './support/rules.ts';
import { answerers, expectAnswers } from './support/traffic.ts';
import { useInLab } from './support/use.ts';
import { nodeObject, objects } from './cluster.ts';

const API = '10.96.1.1';
const API6 = 'fd00:96::1';
const WEB = '10.96.1.2';
const NODE_PORT = 30081;

describe('a daemon of an API server', () => {
  const lab = useLab();
  const node = useInLab(() =>
    ApiNode.create(lab().host('node1'), [
      nodeObject(),
      ...objects([{ name: 'api', ip: API, ip6: API6, pods: 'ac' }]),
    ]),
  );

  test('writes nothing before every kind has been listed', async () => {
    const { server, host } = node();
    const fault = { kind: 'hang' } as const;
    await server.call('addFault', { on: ['stream', 'list'], resource: 'endpointslices', fault, times: 1000 });
    await node().start('certificate');
    await eventually('everything else is listed', async () => {
      const asked = await ask(node().socket, '/v1/status').catch(() => undefined);
      return /"services","hasListed":true,"encoding":"protobuf".*"endpointslices","hasListed":false/.test(
        asked?.text ?? '',
      );
    });
    await eventually('slices are asked for', async () =>
      (await server.call('requests')).some(({ resource }) => resource === 'endpointslices'),
    );
    expect(await ourServiceRules(host)).toBe('');
    expect(await ourServiceRules(host, 'ip6tables-save')).toBe('');

    await server.call('clearFaults');
    await server.call('dropConnections');
    await applied(node().socket);
    expect(await ourRules(host)).toContain('shop/api:http');
  });

  test('forwards what the API server has, in both families', async () => {
    for (const host of [lab().host('client'), lab().host('pod-b')]) {
      expect(await answerers(host, API)).toBe('pod-a pod-c');
      expect(await answerers(host, API6)).toBe('pod-a pod-c');
    }
  });

  test('tells the API server that it starts', async () => {
    await eventually('an event', async () => (await node().server.call('events')).length > 0);
    const [event] = await node().server.call('events');
    expect(event?.path).toBe('/apis/events.k8s.io/v1/namespaces/default/events');
    expect(event?.body).toMatchObject({
      kind: 'Event',
      reason: 'Starting',
      action: 'StartKubeProxy',
      type: 'Normal',
      reportingController: 'kube-proxy',
      reportingInstance: 'kube-proxy-node1',
      regarding: { apiVersion: 'v1', kind: 'Node', name: 'node1' },
      note: '',
    });
  });

  test('asks for what kube-proxy asks for', async () => {
    const requests = await node().server.call('requests');
    const asked = new Set(
      requests
        .filter(({ method, resource }) => method === 'GET' && resource !== '')
        .map(
          ({ resource, query }) =>
            `${resource} ${query['labelSelector'] ?? ''} ${query['fieldSelector'] ?? ''}`,
        ),
    );
    expect([...asked].sort()).toEqual([
      'endpointslices !service.kubernetes.io/headless ',
      'nodes  metadata.name=node1',
      'services !service.kubernetes.io/service-proxy-name spec.clusterIP!=None',
    ]);
  });

  test('a service that another proxy takes over is given up', async () => {
    const client = lab().host('client');
    const [service, ...slices] = objects([{ name: 'web', ip: WEB, nodePort: NODE_PORT, pods: 'bd' }]);
    if (!service) throw new Error('no service');
    await node().put(service, ...slices);
    await expectAnswers(client, WEB, 'pod-b pod-d');
    const labels = { 'service.kubernetes.io/service-proxy-name': 'another' };
    await node().put({ ...service, metadata: { ...service.metadata, labels } });
    await expectAnswers(client, '192.168.100.2', 'refused', NODE_PORT);
  });

  test.each<[code: string, spec: object, labels?: Readonly<Record<string, string>>]>([
    ['headless', { clusterIP: 'None' }],
    ['external-name', { type: 'ExternalName', externalName: 'example.com' }],
    ['other-proxy', {}, { 'service.kubernetes.io/service-proxy-name': 'another' }],
    ['no-cluster-ip', { clusterIP: '' }],
  ])('says of a service that it does not watch: %s', async (code, spec, labels = {}) => {
    const [service] = objects([{ name: code, ip: '10.96.1.7', pods: '' }]);
    if (!service) throw new Error('no service');
    const own = { ...(service['spec'] as object), ...spec };
    await node().put({ ...service, metadata: { ...service.metadata, labels }, spec: own });
    const { findings } = await askFor<ServiceExplanation>(node().socket, `/v1/explain/shop/${code}`);
    expect(findings[0]?.code).toBe(code);
  });
});

describe('a daemon that is told to read JSON', () => {
  const lab = useLab();

  test('asks for it, and serves', async () => {
    const node = await ApiNode.create(lab().host('node1'), [
      nodeObject(),
      ...objects([{ name: 'api', ip: API, ip6: API6, pods: 'ac' }]),
    ]);
    onTestFinished(() => node.close());
    const program = await node.start('token', '--kube-api-content-type=application/json');
    await program.says('"Caches are synced" resource="services" how="stream" encoding="json"');
    await program.serves();
    expect(await answerers(lab().host('client'), API)).toBe('pod-a pod-c');
  });
});

describe('a daemon whose API server is away', () => {
  const lab = useLab();

  test('waits for it, writes nothing, and serves once it is there', async () => {
    const web = objects([{ name: 'web', ip: WEB, pods: 'ac' }]);
    const node = await ApiNode.create(lab().host('node1'), [nodeObject(), ...web]);
    onTestFinished(() => node.close());
    await node.server.call('close');
    const program = await node.start('token');
    await program.says('Watch or list failed; retrying');
    // The API server is asked before the ports are open.
    let readyz: Answer | string = '';
    await eventually('an open port', async () => {
      readyz = await tryFetch(node.host, 'http://127.0.0.1:10256/readyz');
      return typeof readyz === 'object';
    });
    expect(readyz).toMatchObject({
      status: 503,
      body: expect.stringMatching(/^\[-\]services failed: never listed since .*ECONNREFUSED/m),
    });
    expect(await ourServiceRules(node.host)).toBe('');
    const stream = createConnection({ path: node.socket });
    onTestFinished(() => void stream.destroy());
    let streamed = '';
    stream.setEncoding('utf8').on('data', (chunk: string) => void (streamed += chunk));
    stream.write('GET /v1/watch?format=events HTTP/1.1\r\nHost: x\r\n\r\n');
    // One line a minute for all kinds that fail alike.
    const kinds = String.raw`\["\w+","\w+","\w+"\]`;
    await program.says(
      new RegExp(`"Cannot list or watch .*" resources=${kinds} neverListed=${kinds} since="20.*ECONNREFUSED`),
    );
    expect(program.log.match(/"Watch or list failed; retrying"/g)).toHaveLength(3);
    expect(streamed).toContain('\n:\n\n'); // a heartbeat
    await node.server.call('listen');
    await program.serves();
    expect(await answerers(lab().host('client'), WEB)).toBe('pod-a pod-c');
  });
});

describe('a daemon in a pod', () => {
  const lab = useLab();

  /** The program's own /run, with a service account in it. */
  const AS_POD = `mount -t tmpfs tmpfs /run &&
    account=/run/secrets/kubernetes.io/serviceaccount && mkdir -p $account &&
    cp "$CA_FILE" $account/ca.crt && printf %s "$TOKEN" > $account/token && exec "$@"`;

  test('finds the API server and its service account by itself', async () => {
    const web = objects([{ name: 'web', ip: WEB, pods: 'ac' }]);
    const node = await ApiNode.create(lab().host('node1'), [nodeObject(), ...web]);
    onTestFinished(() => node.close());
    const { hostname, port } = new URL(await node.server.call('url'));
    const env = {
      KUBERNETES_SERVICE_HOST: hostname,
      KUBERNETES_SERVICE_PORT: port,
      CA_FILE: certificatePath('ca'),
      TOKEN,
    };
    const before = ['unshare', '--mount', '--', 'sh', '-c', AS_POD, 'sh'];
    const program = node.startWith(['--hostname-override=node1', '--cluster-cidr=10.244.0.0/16'], {
      env,
      before,
    });
    await program.serves();
    expect(await answerers(lab().host('client'), WEB)).toBe('pod-a pod-c');
  });
});
