import { expect, test } from 'vitest';
import { normaliseArguments } from '../../src/cli/arguments.ts';
import { FLAGS } from '../../src/cli/flags.ts';

test.each([
  [['--masquerade-all'], ['--masquerade-all=true'], 'a boolean stands alone'],
  [['--masquerade-all=false'], ['--masquerade-all=false'], 'or has a value'],
  [['--masquerade_all'], ['--masquerade-all=true'], 'underscores are hyphens'],
  [['--cluster_cidr=10.0.0.0/8'], ['--cluster-cidr=10.0.0.0/8'], 'in names'],
  [['--hostname-override=my_node'], ['--hostname-override=my_node'], 'not in values'],
  [['--cluster-cidr', '10.0.0.0/8'], ['--cluster-cidr', '10.0.0.0/8'], 'a value may follow'],
  [['run', '-v', '2'], ['run', '-v', '2'], 'words stay'],
  [['-v=2', '-o=table'], ['-v2', '-otable'], 'an equals sign after a letter'],
  [['--manifests', 'my_dir'], ['--manifests', 'my_dir'], 'as they are'],
])('%j is %j: %s', (args, expected) => expect(normaliseArguments(args, FLAGS)).toEqual(expected));
