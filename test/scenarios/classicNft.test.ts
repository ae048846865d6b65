import { scenariosInLab } from './labTests.ts';

scenariosInLab({ layout: 'classic', variant: 'nft' });
