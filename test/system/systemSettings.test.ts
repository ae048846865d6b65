import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { applySystemSettings, type SystemSettingsOptions } from '../../src/system/sysctl.ts';

const LOCALNET = 'net/ipv4/conf/all/route_localnet';
const BRIDGE = 'net/bridge/bridge-nf-call-iptables';
const BRIDGE6 = 'net/bridge/bridge-nf-call-ip6tables';

describe('system settings', () => {
  let root: string;
  const write = (name: string, text: string): void => {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  };
  const read = (name: string): string => readFileSync(join(root, name), 'utf8').trim();
  const apply = (options: Partial<SystemSettingsOptions> = {}): ReturnType<typeof applySystemSettings> =>
    applySystemSettings({ families: ['IPv4', 'IPv6'], localhostNodePorts: true, root, ...options });

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'junction-'));
    write(LOCALNET, '0\n');
    write(BRIDGE, '1\n');
    write(BRIDGE6, '1\n');
  });
  afterEach(() => rmSync(root, { recursive: true }));

  it('let node ports answer on 127.0.0.1', () => {
    expect(apply()).toEqual({
      changes: [{ name: LOCALNET, previous: '0', value: '1', changed: true }],
      warnings: [],
    });
    expect(read(LOCALNET)).toBe('1');
    expect(apply().changes).toEqual([]);
  });

  it.each<Partial<SystemSettingsOptions>>([{ localhostNodePorts: false }, { families: ['IPv6'] }])(
    'leave route_localnet alone where nothing needs it: %o',
    (options) => {
      expect(apply(options).changes).toEqual([]);
      expect(read(LOCALNET)).toBe('0');
    },
  );

  it('that cannot be made are warnings with their consequence', () => {
    rmSync(join(root, LOCALNET));
    expect(apply().warnings).toEqual([
      {
        message: `cannot read sysctl ${LOCALNET}: ENOENT: node ports do not answer on 127.0.0.1`,
        remedy: expect.stringMatching(/^sysctl -w net\.ipv4\.conf\.all\.route_localnet=1, or turn/),
      },
    ]);
  });

  it('of bridges are looked at, and left as they are', () => {
    write(BRIDGE, '0\n');
    write(BRIDGE6, '0\n');
    expect(apply().warnings).toEqual([
      {
        message: `${BRIDGE} is 0: pods on one bridge that talk through a service get answers from the wrong address`,
        remedy: 'sysctl -w net.bridge.bridge-nf-call-iptables=1',
      },
      expect.objectContaining({ remedy: 'sysctl -w net.bridge.bridge-nf-call-ip6tables=1' }),
    ]);
    expect([read(BRIDGE), read(BRIDGE6)]).toEqual(['0', '0']);
  });

  it('of bridges are no concern of a family that is not served', () => {
    write(BRIDGE6, '0\n');
    expect(apply({ families: ['IPv4'] }).warnings).toEqual([]);
  });

  it('of bridges are no concern where nothing filters bridges', () => {
    rmSync(join(root, 'net/bridge'), { recursive: true });
    expect(apply().warnings).toEqual([]);
  });
});
