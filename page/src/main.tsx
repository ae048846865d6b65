import './base.css';
import './parts/parts.css';
import './frame.css';
import { render } from 'preact';
import { App } from './app.tsx';
import { listenForSearchKey } from './searchKey.ts';

listenForSearchKey();
const root = document.getElementById('page');
if (root) render(<App />, root);
