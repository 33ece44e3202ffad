/** What the language model of the page "writes". */

export const TEXTS = [
  {
    title: "A table for four",
    text:
      "Of course. I have a table for four by the window at half past seven, or one in the garden at eight. " +
      "The garden is lovely tonight, but it may get cool after nine. Which one shall I book for you?",
  },
  {
    title: "The weather",
    text:
      "Here is your forecast. Fog in the valley this morning, clearing before noon. The afternoon stays dry, with a light wind from the west. " +
      "Tomorrow it turns colder, and there may be snow on the pass. If you drive, leave early and take your time.",
  },
  {
    title: "A small story",
    text:
      "The lighthouse keeper had one visitor a year. She came by boat in the first week of May, stayed for a cup of tea, and asked him the same question. " +
      "Is it lonely here? He always looked out at the water before he answered. Only on the days, he said, when I wait for you.",
  },
  {
    title: "Numbers and dates",
    text:
      "Your order of March 3rd came to $48.50 for 12 items. It leaves our store at 7:30 tomorrow and should reach you by the 21st. " +
      "If anything is missing, call us within 14 days and we will make it right.",
  },
];

export const SAMPLE = "This is how I sound. Shall I read something for you?";
