import type { Layout, LayoutName } from '../fragment.ts';
import { classicLayout } from './classic.ts';
import { currentLayout } from './current.ts';

export const LAYOUTS: Readonly<Record<LayoutName, Layout>> = {
  current: currentLayout,
  classic: classicLayout,
};
export const LAYOUT_NAMES: readonly LayoutName[] = ['current', 'classic'];
