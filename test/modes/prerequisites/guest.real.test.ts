/** `junction check --proxy-mode ipvs` in a kernel that has IPVS; one of our own, booted once for all that is asked. */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Check } from '../../../src/modes/prerequisites/check.ts';
import { JUNCTION } from '../../support/programs.ts';
import { jsonFromGuest, requireGuest, whyNoGuest } from '../../support/uml/guest.ts';

const PROGRAMS = ['ipvsadm', 'ipset', 'ip', 'iptables'];

interface Answer {
  readonly status: number;
  readonly stderr: string;
  readonly canRun: boolean;
  readonly summary: string;
  readonly checks: readonly Check[];
}

interface Steps {
  readonly before: string;
  readonly rr: Answer;
  readonly afterwards: string;
  readonly standard: Answer;
  readonly nosuch: Answer;
  readonly text: string;
  readonly nft: Answer;
  readonly nftables: Answer;
  readonly nftablesIpv4: Answer;
  readonly taken: Answer;
  readonly made: Answer;
  readonly atLast: string;
}

describe('in a kernel that has IPVS', () => {
  let steps: Steps;
  beforeEach((context) => requireGuest(context, PROGRAMS));
  beforeAll(async () => {
    if (whyNoGuest(PROGRAMS) !== undefined) return;
    const source = `process.env.JUNCTION_SCRIPT = ${JSON.stringify(JUNCTION)};
      await import('./test/modes/prerequisites/guestSteps.ts');`;
    steps = (await jsonFromGuest('preflight', source, { timeoutMs: 600_000 })) as Steps;
  }, 660_000);

  const troubles = ({ checks }: Answer): readonly string[] =>
    checks.filter(({ state }) => state !== 'present').map(({ state, subject }) => `${state} ${subject}`);

  it('IPVS mode can run, though nobody had loaded a module', () => {
    expect(steps.rr).toMatchObject({ status: 0, stderr: '', canRun: true });
    expect(troubles(steps.rr)).toEqual([]);
    expect(steps.standard).toMatchObject({ status: 0, canRun: true });
  });

  it('leaves nothing behind', () => {
    expect(steps.afterwards).toBe(steps.before);
    expect(steps.atLast).toBe(steps.before);
  });

  it('an unknown scheduler is named', () => {
    expect(steps.nosuch).toMatchObject({ status: 1, canRun: false });
    expect(steps.nosuch.checks.filter(({ state }) => state === 'missing')).toEqual([
      expect.objectContaining({
        subject: 'IPVS scheduler nosuch',
        found: expect.stringContaining('ENOENT'),
        remedy: expect.stringMatching(/spelling of --ipvs-scheduler.*modprobe ip_vs_nosuch/),
      }),
    ]);
  });

  it('the device by its kind', () => {
    expect(steps.taken).toMatchObject({ status: 1 });
    expect(steps.taken.checks).toContainEqual(
      expect.objectContaining({ subject: 'device kube-ipvs0', state: 'missing' }),
    );
    expect(steps.made.checks).toContainEqual(
      expect.objectContaining({ subject: 'device kube-ipvs0', state: 'present' }),
    );
  });

  it('a variant of iptables that the kernel is built without is named, and the other one recommended', () => {
    expect(steps.nft).toMatchObject({ status: 1 });
    expect(steps.nft.checks).toContainEqual({
      subject: 'iptables rules, IPv4',
      state: 'missing',
      needed: 'always',
      found: 'the nat table does not work: the kernel refuses it ("Operation not supported")',
      remedy: expect.stringContaining('--iptables-variant=legacy'),
    });
  });

  it('nftables mode: this kernel has nf_tables, and is built without its families', () => {
    const missing = (family: string): Check => ({
      subject: `nftables, ${family}`,
      state: 'missing',
      needed: 'always',
      found: `tables of ${family}: the kernel refuses it (ENOTSUP)`,
      remedy: expect.stringContaining(`CONFIG_NF_TABLES_${family.toUpperCase()}`),
    });
    expect(steps.nftables).toMatchObject({ status: 1, stderr: '', canRun: false });
    expect(steps.nftables.checks.filter(({ state }) => state !== 'present')).toEqual(
      ['IPv4', 'IPv6'].map(missing),
    );
    expect(steps.nftablesIpv4.checks.filter(({ state }) => state !== 'present')).toEqual([missing('IPv4')]);
  });

  it('says so as a table', () => {
    expect(steps.text).toMatch(/^WHAT +STATE +FOUND/);
    expect(steps.text).toMatch(/^kernel module ip_vs +present/m);
    expect(steps.text).toMatch(/ipvs mode can run here.*\.\n$/);
  });
});
