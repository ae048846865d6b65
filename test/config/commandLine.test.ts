import { describe, expect, test } from 'vitest';
import { flagValue, parseCommandLine, printFlags } from '../../src/config/commandLine.ts';
import { choiceOf } from '../../src/config/kinds.ts';
import { flag } from '../../src/config/setting.ts';
import { FLAGS } from '../../src/config/table.ts';
import { parse, problemsOf } from './given.ts';

describe('what a command line gives', () => {
  test.each<[readonly string[], string, unknown]>([
    [['--proxy-mode=ipvs'], 'proxy-mode', 'ipvs'],
    [['--proxy-mode', 'ipvs'], 'proxy-mode', 'ipvs'],
    [['--proxy_mode', 'ipvs'], 'proxy-mode', 'ipvs'],
    [['--kubeconfig=a=b'], 'kubeconfig', 'a=b'],
    [['--kubeconfig', '--not-a-flag'], 'kubeconfig', '--not-a-flag'],
    [['--kubeconfig='], 'kubeconfig', ''],
    [['--proxy-mode=ipvs', '--proxy-mode=nftables'], 'proxy-mode', 'nftables'],
    [['--masquerade-all'], 'masquerade-all', true],
    [['--masquerade-all=false'], 'masquerade-all', false],
    [['-v', '2'], 'v', 2],
    [['-v2'], 'v', 2],
    [['--v=2'], 'v', 2],
    [['--oom-score-adj=-5'], 'oom-score-adj', -5],
    [['--conntrack-min=0x10'], 'conntrack-min', 16],
    [['--conntrack-min=1_000'], 'conntrack-min', 1000],
    // As arguments of a container have them, where no shell takes quotes away.
    [['--nodeport-addresses="10.0.0.0/8",1.2.3.4/32'], 'nodeport-addresses', ['10.0.0.0/8', '1.2.3.4/32']],
    [['--nodeport-addresses="a,b",c,"d""e",'], 'nodeport-addresses', ['a,b', 'c', 'd"e', '']],
    [['--conntrack-min=010'], 'conntrack-min', 8],
    [['--kube-api-qps=1e2'], 'kube-api-qps', 100],
    [['--iptables-min-sync-period=100ms'], 'iptables-min-sync-period', 100],
    [['--nodeport-addresses=a', '--nodeport-addresses=b,c'], 'nodeport-addresses', ['a', 'b', 'c']],
    [['--nodeport-addresses='], 'nodeport-addresses', []],
    [['--cluster-cidr=10.0.0.0/8,fd00::/8'], 'cluster-cidr', '10.0.0.0/8,fd00::/8'],
    [['--feature-gates=A=true,B=false', '--feature-gates=B=true'], 'feature-gates', { A: true, B: true }],
    [
      ['--vmodule=a=1,b*=2'],
      'vmodule',
      [
        { filePattern: 'a', verbosity: 1 },
        { filePattern: 'b*', verbosity: 2 },
      ],
    ],
    [['--bind-address=::ffff:10.0.0.1'], 'bind-address', '::ffff:10.0.0.1'],
    [['--healthz-bind-address=[::1]:80'], 'healthz-bind-address', '[::1]:80'],
    [['--healthz-bind-address=::1'], 'healthz-bind-address', '::1'],
    [['--hostname-override=  Node-1 '], 'hostname-override', 'node-1'],
  ])('%j: --%s is %j', (argv, name, value) => {
    expect(parse(...argv).values.get(name)).toEqual(value);
  });

  test.each(['bind-address', 'healthz-bind-address', 'metrics-bind-address', 'hostname-override'])(
    'an empty --%s is as good as none',
    (name) => {
      expect(parse(`--${name}=`).values.has(name)).toBe(false);
    },
  );

  test('a flag that was not given is not there, and has its default', () => {
    const parsed = parse();
    expect(parsed.values.size).toBe(0);
    const period = FLAGS.find(({ name }) => name === 'iptables-sync-period');
    expect(period && flagValue(parsed, period)).toBe(30_000);
  });

  test('--version and --help', () => {
    expect(parse('--version').version).toBe('yes');
    expect(parse('--version=true').version).toBe('yes');
    expect(parse('--version=raw').version).toBe('raw');
    expect(parse('--version=false').version).toBe('no');
    expect(parse('-h').help).toBe(true);
    expect(parse('--what', '--help')).toMatchObject({ help: true });
  });

  test('a command may know other flags', () => {
    const output = flag('output', choiceOf(['text', 'json']), 'text', {
      short: 'o',
      help: 'what is printed',
    });
    const parsed = parseCommandLine(['-o', 'json'], [output]);
    expect(parsed.ok && flagValue(parsed.value, output)).toBe('json');
    expect(parseCommandLine(['-o', 'yaml'], [output])).toEqual({
      ok: false,
      problems: ['invalid argument "yaml" for "-o, --output" flag: must be one of text, json'],
    });
  });

  test('flags of Windows and deprecated ones are said to be so, once', () => {
    expect(parse('--enable-dsr', '--enable-dsr', '--healthz-port=1').notes).toEqual([
      { severity: 'warning', message: 'Flag --enable-dsr has no effect, because it is for Windows' },
      {
        severity: 'warning',
        message: 'Flag --healthz-port has been deprecated, use --healthz-bind-address instead',
      },
    ]);
  });

  test('prints every flag for the log', () => {
    const lines = printFlags(parse('--proxy-mode=ipvs', '--v=1'));
    expect(lines).toHaveLength(FLAGS.length);
    expect(lines).toContain('FLAG: --proxy-mode="ipvs"');
    expect(lines).toContain('FLAG: --conntrack-tcp-timeout-established="24h0m0s"');
    expect(lines).toEqual([...lines].sort());
  });
});

describe('what is wrong with a command line', () => {
  test.each<[readonly string[], string]>([
    [['--proxymode=ipvs'], 'unknown flag: --proxymode (did you mean --proxy-mode?)'],
    [['--cluster-cidrs', 'x'], 'unknown flag: --cluster-cidrs (did you mean --cluster-cidr?)'],
    [['--ipvs-shceduler=rr'], 'unknown flag: --ipvs-shceduler (did you mean --ipvs-scheduler?)'],
    [['--zzzzzz'], 'unknown flag: --zzzzzz'],
    [['-config=x'], "unknown shorthand flag: 'c' in -config=x (did you mean --config?)"],
    [['-vmodule=x=1'], "unknown shorthand flag: 'v' in -vmodule=x=1 (did you mean --vmodule?)"],
    [['run'], 'unexpected argument "run": there are flags only'],
    [['--', '--cleanup'], 'unexpected argument "--cleanup": there are flags only'],
    [['--cleanup', 'false'], 'unexpected argument "false": there are flags only (write --cleanup=false)'],
    [['--cleanup=maybe'], 'invalid argument "maybe" for "--cleanup" flag: must be true or false'],
    [['--oom-score-adj=1.5'], 'invalid argument "1.5" for "--oom-score-adj" flag: must be a whole number'],
    [['-v=-1'], 'invalid argument "-1" for "-v, --v" flag: must be between 0 and 2147483647'],
    [['--kube-api-qps=x'], 'invalid argument "x" for "--kube-api-qps" flag: must be a number'],
    [
      ['--iptables-sync-period=30'],
      'invalid argument "30" for "--iptables-sync-period" flag: must be a duration, and has no unit: perhaps 30s',
    ],
    [
      ['--iptables-sync-period=soon'],
      'invalid argument "soon" for "--iptables-sync-period" flag: must be a duration, such as 30s, 15m or 2h22m',
    ],
    [
      ['--bind-address=[::1]'],
      'invalid argument "[::1]" for "--bind-address" flag: "[::1]" is not a valid IP address',
    ],
    [
      ['--healthz-bind-address=host:1'],
      'invalid argument "host:1" for "--healthz-bind-address" flag: "host" is not a valid IP address',
    ],
    [
      ['--feature-gates=A'],
      'invalid argument "A" for "--feature-gates" flag: A must be written as A=true or A=false',
    ],
    [['--feature-gates=A=2'], 'invalid argument "A=2" for "--feature-gates" flag: A must be true or false'],
    [['--vmodule=a'], 'invalid argument "a" for "--vmodule" flag: "a" does not have the pattern=N format'],
    [
      ['--log-json-info-buffer-size=lots'],
      'invalid argument "lots" for "--log-json-info-buffer-size" flag: must be a quantity such as 512 or 2Ki',
    ],
    [['--version=2'], 'invalid argument "2" for "--version" flag: must be true, false or raw'],
  ])('%j: %s', (argv, problem) => {
    expect(problemsOf(...argv)).toEqual([problem]);
  });

  test('is all found at once', () => {
    expect(problemsOf('--nope', '--oom-score-adj=x', 'word')).toHaveLength(3);
  });
});
