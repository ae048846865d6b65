import { describe, expect, test } from 'vitest';
import { Renderer } from './template/evaluate.ts';
import { parseTemplate } from './template/parse.ts';

function render(source: string, data: unknown = {}): string {
  return new Renderer(new Map([['main', parseTemplate(source)]])).render('main', data);
}

describe('the templates of the tests do what Helm does', () => {
  // The expected texts are what Go's text/template with sprig prints.
  test.each([
    ['values', 'a {{ .x.y }} {{ $.n }}', { x: { y: 'b' }, n: 3 }, 'a b 3'],
    ['white space', 'a \n {{- .x -}} \n b', { x: '-' }, 'a-b'],
    ['a comment', 'a{{- /* if } */ -}} b', {}, 'ab'],
    ['if', '{{ if .x }}yes{{ else if .y }}or{{ else }}no{{ end }}', { x: '', y: [] }, 'no'],
    ['with', '{{ with .x }}{{ .y }}{{ else }}{{ .z }}{{ end }}', { x: {}, z: 'z' }, 'z'],
    ['range over a list', '{{ range .x }}[{{ . }}]{{ end }}', { x: ['b', 'a'] }, '[b][a]'],
    [
      'range over a map',
      '{{ range $k, $v := .x }}{{ $k }}={{ $v }} {{ end }}',
      { x: { b: 1, a: 2 } },
      'a=2 b=1 ',
    ],
    ['define', '{{ define "t" }}<{{ . }}>{{ end }}{{ include "t" .x | quote }}', { x: 'y' }, '"<y>"'],
    ['pipelines', '{{ default "a" .x | printf "%s-%v" .y }}', { x: '', y: 'b' }, 'b-a'],
    ['parentheses', '{{ not (or .x (eq .y "b")) }}', { x: 0, y: 'b' }, 'false'],
    ['toYaml', 'x:{{ toYaml .x | nindent 2 }}', { x: { b: 1, a: ['c'] } }, 'x:\n  a:\n    - c\n  b: 1'],
    ['variables', '{{ $x := .n }}{{ if true }}{{ $x = 2 }}{{ $y := 3 }}{{ end }}{{ $x }}', { n: 1 }, '2'],
    [
      'a variable of an inner block',
      '{{ $x := 1 }}{{ with 5 }}{{ $x := . }}{{ $x }}{{ end }}{{ $x }}',
      {},
      '51',
    ],
    ['range over nil', 'a{{ range .x }}b{{ end }}', { x: null }, 'a'],
    ['and, or', '{{ and .x true }}{{ or .x 1 }}', { x: false }, 'false1'],
    ['len', '{{ if ne (len .x) 1 }}{{ len .x }}{{ end }}', { x: ['a', 'b'] }, '2'],
    ['int64', '{{ int64 .x | quote }}', { x: 1048576 }, '"1048576"'],
  ])('%s', (_, source, data, expected) => {
    expect(render(source, data)).toBe(expected);
  });

  test.each([
    ['an unknown function', '{{ lookup "v1" }}', 'lookup is a function that these tests do not know'],
    ['a missing value', '{{ .x.y }}', 'there is no x'],
    ['a missing end', '{{ if true }}', 'end of file instead of end'],
    ['an end too many', '{{ end }}', 'closes nothing'],
    ['a variable that nobody declared', '{{ $x }}', 'there is no $x'],
    ['a variable outside of its block', '{{ if true }}{{ $x := 1 }}{{ end }}{{ $x }}', 'there is no $x'],
    ['the length of nothing', '{{ len .x }}', 'there is no x'],
    ['an object as text', '{{ . }}', 'toYaml'],
    ['a number that Go prints as 1e+06', '{{ 1000000 }}', 'int64'],
  ])('what they do not know is an error: %s', (_, source, message) => {
    expect(() => render(source)).toThrow(message);
  });
});
