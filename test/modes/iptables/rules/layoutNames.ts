import type { LayoutName } from '../../../../src/modes/iptables/rules/fragment.ts';

export const LAYOUT_NAMES: readonly LayoutName[] = ['current', 'classic'];
