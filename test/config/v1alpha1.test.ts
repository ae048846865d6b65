import { describe, expect, test } from 'vitest';
import { toV1alpha1, writeConfig } from '../../src/config/effective.ts';
import { shapeOf } from './configzShapes.ts';
import { fromFile, fromFlags, load } from './given.ts';

describe('/configz', () => {
  test.each(['iptables', 'ipvs', 'nftables'] as const)('of mode %s is what kube-proxy shows', (mode) => {
    const { argv, json } = shapeOf(mode);
    const body = { 'kubeproxy.config.k8s.io': toV1alpha1(fromFlags(...argv)) };
    expect(JSON.stringify(body)).toBe(JSON.stringify(json));
  });

  test('leaves out what is empty, and shows it when it is not', () => {
    const view = toV1alpha1(
      fromFlags(
        '--feature-gates=AllBeta=true,AllAlpha=false',
        '--vmodule=a=1',
        '--log-json-split-stream',
        '--log-text-info-buffer-size=2Ki',
      ),
    );
    expect(Object.keys(view).slice(0, 4)).toEqual(['kind', 'apiVersion', 'featureGates', 'clientConnection']);
    expect(JSON.stringify(view['featureGates'])).toBe('{"AllAlpha":false,"AllBeta":true}');
    expect(JSON.stringify(view['logging'])).toBe(
      '{"format":"text","flushFrequency":"5s","verbosity":0,"vmodule":[{"filePattern":"a","verbosity":1}],"options":{"text":{"infoBufferSize":"2Ki"},"json":{"splitStream":true,"infoBufferSize":"0"}}}',
    );
    expect(toV1alpha1(fromFile({ windowsRunAsService: true }))).toMatchObject({ windowsRunAsService: true });
  });

  test("shows Junction's settings only where they are not the defaults", () => {
    expect(
      toV1alpha1(fromFlags('--firewalld=false', '--manifests=a,b', '--iptables-layout=current'))['junction'],
    ).toEqual({
      manifests: ['a', 'b'],
      firewalld: false,
    });
  });

  test('has masqueradeAll of the ipvs mode in the iptables section', () => {
    expect(toV1alpha1(fromFlags('--proxy-mode=ipvs', '--masquerade-all'))).toMatchObject({
      iptables: { masqueradeAll: true },
      nftables: { masqueradeAll: false },
    });
    expect(toV1alpha1(fromFlags('--proxy-mode=nftables', '--masquerade-all'))).toMatchObject({
      iptables: { masqueradeAll: false },
      nftables: { masqueradeAll: true },
    });
  });
});

describe('--write-config-to', () => {
  test.each<[readonly string[]]>([
    [[]],
    [['--proxy-mode=ipvs', '--ipvs-sync-period=1m', '--ipvs-exclude-cidrs=10.0.0.0/8', '--masquerade-all']],
    [['--proxy-mode=nftables', '--iptables-min-sync-period=100ms', '--masquerade-all']],
    [['--nodeport-addresses=10.0.0.0/8,fd00::/8', '--cluster-cidr=10.0.0.0/8,fd00::/8']],
    [['--feature-gates=AllowServiceExternalIPs=false', '--vmodule=a=1,b=2', '-v=3', '--logging-format=json']],
    [['--conntrack-max-per-core=0', '--conntrack-tcp-timeout-established=0', '--conntrack-udp-timeout=1.5s']],
    [['--iptables-masquerade-bit=0', '--iptables-localhost-nodeports=false', '--oom-score-adj=0']],
    [['--bind-address=fd00::1', '--metrics-bind-address=[::1]:80', '--hostname-override=on']],
    [
      [
        '--manifests=a,b',
        '--firewalld=false',
        '--hold-ports',
        '--iptables-layout=classic',
        '--iptables-variant=nft',
        '--sysctl-root=/host',
      ],
    ],
    [['--detect-local-mode=BridgeInterface', '--pod-bridge-interface=1234']],
  ])('of %j is read back as the same configuration', (argv) => {
    const { config } = load(argv);
    const again = load([], writeConfig(config));
    expect(again.config).toEqual(config);
    expect(again.notes).toEqual([]);
    expect(writeConfig(again.config)).toBe(writeConfig(config));
  });

  test('is sorted, with lists as Kubernetes writes them', () => {
    const text = writeConfig(fromFlags('--nodeport-addresses=10.0.0.0/8'));
    const keys = [...text.matchAll(/^(\w+):/gm)].map(([, key]) => key);
    expect(keys).toEqual([...keys].sort());
    expect(text).toContain('\nnodePortAddresses:\n- 10.0.0.0/8\n');
    expect(text).toContain('\n  excludeCIDRs: null\n');
    expect(text).toContain('\n      infoBufferSize: "0"\n');
  });
});
