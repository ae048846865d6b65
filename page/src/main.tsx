import './base.css';
import { render } from 'preact';
import { App } from './app.tsx';
import { keepTheme } from './theme.ts';

keepTheme();
const root = document.getElementById('page');
if (root) render(<App />, root);
