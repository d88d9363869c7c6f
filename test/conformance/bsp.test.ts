import { testChapter } from './chapter.ts';

testChapter('bsp');
