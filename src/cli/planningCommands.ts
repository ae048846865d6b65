/** One part of the program: what reads the configuration and plans in this process; and help. */
export { commandHelp, overview } from './commandHelp.ts';
export { completionCommand } from './completionCommand.ts';
export { loadValid, nodeName, nodeSettings } from './configuration.ts';
export { needInput, planCommand } from './planCommand.ts';
export { subjectAnswers } from './subjectAnswers.ts';
