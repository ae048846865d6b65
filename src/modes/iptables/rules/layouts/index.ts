import { ipvsLayout } from '../../../ipvs/rules/rules.ts';
import type { Layout, LayoutName, SharedRule } from '../fragment.ts';
import { classicLayout } from './classic.ts';
import { currentLayout } from './current.ts';

export const LAYOUTS: Readonly<Record<LayoutName, Layout>> = {
  current: currentLayout,
  classic: classicLayout,
};
/** Whatever mode ran before: its chains are known, and go when they are not needed. */
export const EVERY_LAYOUT: readonly Layout[] = [currentLayout, classicLayout, ipvsLayout];
export const EVERY_JUMP: readonly SharedRule[] = EVERY_LAYOUT.flatMap(({ jumps }) => jumps);
