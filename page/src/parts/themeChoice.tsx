import { useState } from 'preact/hooks';
import { setTheme, type Theme, theme, THEMES } from '../theme.ts';
import { MoonIcon, ScreenIcon, SunIcon } from './icons.tsx';

const ICONS = { system: ScreenIcon, light: SunIcon, dark: MoonIcon };
const NAMES: Readonly<Record<Theme, string>> = { system: 'As the system', light: 'Light', dark: 'Dark' };

export function ThemeChoice() {
  const [chosen, setChosen] = useState(theme);
  return (
    <fieldset class="theme">
      <legend class="visually-hidden">Colours</legend>
      {THEMES.map((each) => {
        const Icon = ICONS[each];
        return (
          <label key={each} title={NAMES[each]}>
            <input
              type="radio"
              name="theme"
              class="visually-hidden"
              checked={each === chosen}
              onChange={() => {
                setTheme(each);
                setChosen(each);
              }}
            />
            <Icon />
            <span class="visually-hidden">{NAMES[each]}</span>
          </label>
        );
      })}
    </fieldset>
  );
}
