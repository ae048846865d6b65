import './base.css';
import './parts/parts.css';
import './frame.css';
import { render } from 'preact';
import { App } from './app.tsx';
import { keepScrollPositions } from './scrollMemory.ts';
import { keepTheme } from './theme.ts';

keepTheme();
keepScrollPositions();
const root = document.getElementById('page');
if (root) render(<App />, root);
