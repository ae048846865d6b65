/** Colours of a text for people; who prints it says whether there are any. */
export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

export type Paint = (colour: Colour, text: string) => string;
