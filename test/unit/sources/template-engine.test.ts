import { describe, expect, it } from 'vitest';
import { renderTemplate } from '../../../machine-config/sources/templates/engine.js';

const values = {
  name: 'x<"&',
  text: 'first\nsecond\n',
  number: 7,
  off: false,
  nothing: null,
  list: [1, 2],
  object: { a: 1, b: true },
};

describe('a template', () => {
  it.each([
    ['shows a value as it is, without escapes', '{{name}}', 'x<"&'],
    ['shows a value the same in three braces', '{{{name}}}', 'x<"&'],
    ['does not add neighbouring numbers', '{{number}}{{number}}', '77'],
    ['does not add neighbouring booleans', '{{off}}{{off}}', 'falsefalse'],
    ['repeats', '{{#each list}}{{@index}}:{{this}} {{/each}}', '0:1 1:2 '],
    ['repeats over an object', '{{#each object}}{{@key}}={{this}};{{/each}}', 'a=1;b=true;'],
    ['reads outer values in a repetition', '{{#each list}}{{../number}}{{/each}}', '77'],
    ['chooses', '{{#if off}}a{{else}}b{{/if}}', 'b'],
    ['chooses by a comparison', '{{#if (eq number "7")}}a{{else}}b{{/if}}', 'a'],
    ['asks what is there', '{{#if (has object "a")}}1{{/if}}{{#if (has object "toString")}}2{{/if}}', '1'],
    ['puts several lines in place', 'k: {{indent 3 text}}|', 'k: first\n   second|'],
    ['writes JSON', '{{json object}} {{json list}} {{json name}}', '{"a":1,"b":true} [1,2] "x<\\"&"'],
    ['leaves comments out', 'a{{!-- b --}}c', 'ac'],
  ])('%s', (_, template, text) => {
    expect(renderTemplate(template, values)).toEqual({ ok: true, text });
  });

  it.each([
    ['a value that is not there', '{{nmae}}', 'there is no value nmae'],
    ['a deeper value that is not there', '{{object.c}}', 'there is no value object.c'],
    ['a condition on what is not there', '{{#if nmae}}a{{/if}}', 'there is no value nmae'],
    ['a repetition over what is not there', '{{#each nmae}}a{{/each}}', 'there is no value nmae'],
    ['an argument that is not there', '{{indent 2 nmae}}', 'there is no value nmae'],
    ['a value that is empty', '{{nothing}}', 'a value is empty'],
    ['an object in place of a text', '{{object}}', 'use json'],
    ['a block that nobody knows', '{{#object}}{{a}}{{/object}}', '{{#object}} is no block'],
    ['a function that nobody knows', '{{upper name}}', 'there is no upper'],
    ['another template', '{{> other}}', 'cannot include'],
    ['a block that is not closed', '{{#if off}}', 'Parse error on line 1'],
  ])('refuses %s', (_, template, error) => {
    const rendered = renderTemplate(template, values);
    expect(rendered).toEqual({ ok: false, error: expect.stringContaining(error) as string });
    expect(rendered.ok || rendered.error).not.toContain('\n');
  });

  it.each([
    '{{constructor}}',
    '{{object.constructor}}',
    '{{object.constructor.constructor}}',
    '{{constructor.constructor "return process"}}',
    '{{__proto__}}',
    '{{object.__proto__.polluted}}',
    '{{#with list}}{{constructor}}{{/with}}',
    '{{#with "text"}}{{constructor.constructor}}{{/with}}',
    '{{name.constructor}}',
    '{{lookup object "constructor"}}',
    '{{#each list}}{{../constructor}}{{/each}}',
    '{{@root.constructor}}',
    '{{#*inline "x"}}a{{/inline}}{{> x}}',
    '{{log object}}',
    '{{helperMissing}}',
    '{{toString}}',
    '{{hasOwnProperty}}',
  ])('reaches no code by %s', (template) => {
    expect(renderTemplate(template, values)).toMatchObject({ ok: false });
  });
});
