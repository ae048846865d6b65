import { EMPTY, FakeKernel } from './fakeKernel.ts';
import { chainName } from './harness.ts';

/** What another program may do to our rules. */
export const TAMPERINGS: readonly (readonly [string, (kernel: FakeKernel) => void])[] = [
  ['a rule of KUBE-SERVICES is gone', (kernel) => kernel.tamper('nat', '-D KUBE-SERVICES 1')],
  [
    'the last rule of KUBE-SERVICES is gone',
    (kernel) => kernel.tamper('nat', `-D KUBE-SERVICES ${kernel.rulesOf('nat', 'KUBE-SERVICES').length}`),
  ],
  ['KUBE-SERVICES is empty', (kernel) => kernel.tamper('nat', '-F KUBE-SERVICES')],
  [
    'a rule stands behind the last one',
    (kernel) => kernel.tamper('nat', '-A KUBE-SERVICES -s 9.9.9.9 -j ACCEPT'),
  ],
  [
    'a stranger’s rule is in our chain',
    (kernel) => kernel.tamper('nat', '-I KUBE-SERVICES 3 -s 9.9.9.9 -j ACCEPT'),
  ],
  [
    'a rule is there twice',
    (kernel) => kernel.tamper('nat', `-A KUBE-NODEPORTS ${kernel.rulesOf('nat', 'KUBE-NODEPORTS')[0] ?? ''}`),
  ],
  ['a service chain is empty', (kernel) => kernel.tamper('nat', `-F ${chainName('SVC', 'shop/api')}`)],
  [
    'an endpoint chain has one rule less',
    (kernel) => kernel.tamper('nat', `-D ${chainName('SEP', 'shop/api', '10.244.0.10:8080')} 1`),
  ],
  ['KUBE-MARK-MASQ is empty', (kernel) => kernel.tamper('nat', '-F KUBE-MARK-MASQ')],
  ['KUBE-POSTROUTING has one rule more', (kernel) => kernel.tamper('nat', '-I KUBE-POSTROUTING 1 -j RETURN')],
  ['a jump is gone', (kernel) => kernel.tamper('filter', '-F FORWARD')],
  ['all jumps are gone', (kernel) => kernel.tamper('nat', '-F PREROUTING', '-F OUTPUT', '-F POSTROUTING')],
  [
    'the nat table is empty',
    (kernel) => {
      kernel.tables = new FakeKernel(EMPTY).tables;
    },
  ],
  [
    'an old chain of ours is left',
    (kernel) =>
      kernel.tamper(
        'nat',
        `:${chainName('SVC', 'old/one')} - [0:0]`,
        `:${chainName('SEP', 'old/one', '1.1.1.1:1')} - [0:0]`,
        `-A ${chainName('SVC', 'old/one')} -j ${chainName('SEP', 'old/one', '1.1.1.1:1')}`,
      ),
  ],
  [
    'rules of a service changed places',
    (kernel) =>
      kernel.tamper(
        'nat',
        `-D KUBE-SERVICES ${kernel.rulesOf('nat', 'KUBE-SERVICES')[2] ?? ''}`,
        `-I KUBE-SERVICES 6 ${kernel.rulesOf('nat', 'KUBE-SERVICES')[2] ?? ''}`,
      ),
  ],
];
