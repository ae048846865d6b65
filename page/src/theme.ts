/** Light, dark, or as the system has it. */
const KEY = 'junction-theme';

export type Theme = 'system' | 'light' | 'dark';
export const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

export function theme(): Theme {
  const kept = localStorage.getItem(KEY);
  return THEMES.find((each) => each === kept) ?? 'system';
}

export function setTheme(chosen: Theme): void {
  localStorage.setItem(KEY, chosen);
  show(chosen);
}

export function keepTheme(): void {
  show(theme());
}

function show(chosen: Theme): void {
  if (chosen === 'system') document.documentElement.removeAttribute('data-theme');
  else document.documentElement.dataset['theme'] = chosen;
}
