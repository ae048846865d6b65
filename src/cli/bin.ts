import { main } from './main.ts';

// Nothing is left to wait for; a forgotten timer or socket must not keep the process alive.
process.exit(await main(process.argv.slice(2)));
