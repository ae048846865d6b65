import { useState } from 'preact/hooks';
import { setTheme, theme, THEMES } from '../theme.ts';

export function ThemeChoice() {
  const [chosen, setChosen] = useState(theme);
  return (
    <label class="theme">
      <span class="visually-hidden">Colours</span>
      <select
        value={chosen}
        onChange={(event) => {
          const next = THEMES.find((each) => each === event.currentTarget.value) ?? 'system';
          setTheme(next);
          setChosen(next);
        }}
      >
        {THEMES.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}
