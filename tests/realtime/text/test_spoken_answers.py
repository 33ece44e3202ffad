"""Whole answers as language models write them, and what is said for them."""

import pytest

from realtime.text import spoken_form

ANSWERS = [
    (
        "**Note:** It's $3.50/month (that's 10% off!) — see https://example.com/a?b=c, e.g. v2.0.1, "
        "3:00-4:30pm, Jan. 5th, 1990s, 5'10\", 1/2 cup, +1 (555) 123-4567, #3, A/B, C++, COVID-19, "
        "10k, 2x, 24/7, 100°F, 5 km/h, 3–4 days, No. 5, St. John, U.S.A., Ph.D., i.e., W3C, GPT-4o, "
        "iPhone 15",
        "note: it's three dollars and fifty cents per month, that's ten percent off! see example dot "
        "com slash a question mark b equals c, for example version two point zero point one, three to "
        "four thirty p m, january fifth, nineteen nineties, five foot ten, one half cup, plus one, "
        "five five five, one two three, four five six seven, number three, a b, c plus plus, covid "
        "nineteen, ten thousand, two x, twenty four seven, one hundred degrees fahrenheit, five "
        "kilometers per hour, three to four days, number five, saint john, u s a, p h d, that is, w "
        "three c, g p t four o, iphone fifteen.",
    ),
    (
        "Sure! Here's a quick breakdown:\n\n1. **Flight:** UA 482 departs SFO at 6:15 a.m. and lands "
        "at JFK at 2:47 p.m. (5h 32m).\n2. **Hotel:** 3 nights @ $189/night = $567 + tax (≈ "
        "14.75%).\n3. **Total:** about $1,043.27 — that's $120 less than last time! 🎉\n\nWant me to "
        'book it? Just reply "yes" or call 1-800-864-8331.',
        "sure! here's a quick breakdown: one, flight: u a four eighty two departs s f o at six fifteen "
        "a m and lands at j f k at two forty seven p m, five hours thirty two minutes. two, hotel: "
        "three nights at one hundred and eighty nine dollars per night equals five hundred and sixty "
        "seven dollars plus tax, about fourteen point seven five percent. three, total: about one "
        "thousand and forty three dollars and twenty seven cents, that's one hundred and twenty "
        "dollars less than last time! want me to book it? just reply yes or call one eight hundred, "
        "eight six four, eight three three one.",
    ),
    (
        "The Eiffel Tower is 330 m (1,083 ft) tall and was completed on March 31, 1889. It gets ~7 "
        "million visitors/year.",
        "the eiffel tower is three hundred and thirty meters, one thousand and eighty three feet, tall "
        "and was completed on march thirty-first, eighteen eighty nine. it gets about seven million "
        "visitors per year.",
    ),
    (
        "To install, run `pip install voxwire==0.3.1` and then open http://localhost:8080. If you're "
        "on Windows 11, use PowerShell 7.4+.",
        "to install, run pip install voxwire equals zero point three point one and then open localhost "
        "colon eighty eighty. if you're on windows eleven, use powershell seven point four plus.",
    ),
    (
        "According to the U.S. Bureau of Labor Statistics (BLS), unemployment fell to 3.9% in Q4 2023, "
        "down from 4.1% a year earlier.",
        "according to the u s bureau of labor statistics, b l s, unemployment fell to three point nine "
        "percent in q four twenty twenty three, down from four point one percent a year earlier.",
    ),
    (
        "Preheat the oven to 350°F (175°C). Mix 2 1/2 cups flour, 1 tsp. salt, and ¾ cup butter. Bake "
        "for 20–25 min.",
        "preheat the oven to three hundred and fifty degrees fahrenheit, one hundred and seventy five "
        "degrees celsius. mix two and a half cups flour, one teaspoon salt, and three quarters cup "
        "butter. bake for twenty to twenty five minutes.",
    ),
    (
        "Hi Dr. O'Neill, your appt. is on Mon., Nov. 30 at 4:30 PM w/ Dr. Patel @ 221B Baker St., "
        "Suite #400. Reply STOP to opt out.",
        "hi doctor o'neill, your appointment is on monday, november thirtieth at four thirty p m with "
        "doctor patel at two hundred and twenty one b baker street, suite number four hundred. reply "
        "stop to opt out.",
    ),
    (
        "The model has 70B parameters, 128k context, and costs $0.15/1M tokens. GPT-4o-mini is ~60% "
        "cheaper than GPT-3.5 Turbo.",
        "the model has seventy billion parameters, one hundred and twenty eight thousand context, and "
        "costs fifteen cents per one million tokens. g p t four o mini is about sixty percent cheaper "
        "than g p t three point five turbo.",
    ),
    (
        "In 1066, William I defeated Harold II at the Battle of Hastings. By the 1200s, King John (r. "
        "1199–1216) signed Magna Carta.",
        "in ten sixty six, william i defeated harold the second at the battle of hastings. by the "
        "twelve hundreds, king john, r. eleven ninety nine to twelve sixteen, signed magna carta.",
    ),
    (
        "Your order #A-10293 (2x USB-C cables, 1x 65W charger) ships Dec. 3rd via UPS; tracking: "
        "1Z999AA10123456784.",
        "your order number a one zero two nine three, two x u s b c cables, one x sixty five watts "
        "charger, ships december third via u p s; tracking: one z nine nine nine a a one zero one two "
        "three four five six seven eight four.",
    ),
    (
        "E = mc² means energy equals mass times the speed of light squared (c ≈ 3×10^8 m/s).",
        "e equals m c squared means energy equals mass times the speed of light squared, c about three "
        "times ten to the power of eight m s.",
    ),
    (
        "I'm sorry to hear that. Let's try this:\n* Unplug the router for 30 sec.\n* Plug it back "
        "in\n* Wait until the LED turns green\n\nDid that work?",
        "i'm sorry to hear that. let's try this: unplug the router for thirty seconds. plug it back "
        "in. wait until the l e d turns green. did that work?",
    ),
    (
        "Paris (pop. 2.1M) vs. London (pop. 8.9M): which is bigger?",
        "paris, population two point one million, versus london, population eight point nine million: "
        "which is bigger?",
    ),
    (
        'She said, "I\'ll be there by 5." He replied, "Great—see you then!"',
        "she said, i'll be there by five. he replied, great, see you then!",
    ),
    (
        "You scored 17/20 (85%), i.e. a B+. Nice work!!",
        "you scored seventeen out of twenty, eighty five percent, that is a b plus. nice work!",
    ),
    (
        "Temperature: −4 °C to 3 °C; wind NW 15–20 km/h; humidity 82%.",
        "temperature: minus four degrees celsius to three degrees celsius; wind n w fifteen to twenty "
        "kilometers per hour; humidity eighty two percent.",
    ),
    (
        "Go to Settings > Privacy & Security > Location Services.",
        "go to settings, privacy and security, location services.",
    ),
    (
        "My number is (415) 555-0132 ext. 7. Or text 555-0199.",
        "my number is four one five, five five five, zero one three two extension seven. or text five "
        "five five, zero one nine nine.",
    ),
    (
        "Here's the code:\n```python\nfor i in range(10):\n    print(i)\n```\nIt prints 0 to 9.",
        "here's the code: for i in range ten: print i. it prints zero to nine.",
    ),
    (
        "It's a win-win, first-come-first-served, 10-minute, A-to-Z, one-of-a-kind offer.",
        "it's a win-win, first-come-first-served, ten minute, a-to-z, one-of-a-kind offer.",
    ),
    (
        "The Q&A starts at 10:00 and ends at 11:00 am sharp. Lunch is 12-1.",
        "the q and a starts at ten o'clock and ends at eleven a m sharp. lunch is twelve to one.",
    ),
    (
        "I have $5, 5€, and 500 yen. That's approx. $13.50 USD total.",
        "i have five dollars, five euros, and five hundred yen. that's approximately thirteen dollars "
        "and fifty cents total.",
    ),
    (
        "Mr. T. and Mrs. K. went to St. Mary's. Ms. Lee, M.D., Ph.D., stayed.",
        "mister t and missus k went to saint mary's. miss lee, m d, p h d, stayed.",
    ),
    (
        "Chapter 3: The 2nd Law (pp. 45-67)",
        "chapter three: the second law, pages forty five to sixty seven.",
    ),
    (
        "Try again at 12:00 AM or 12 PM.",
        "try again at twelve a m or twelve p m.",
    ),
    (
        "The meeting is 2/14/24 from 1-2pm EST. RSVP ASAP to hr@acme.com.",
        "the meeting is february fourteenth, twenty twenty four from one to two p m e s t. r s v p a s "
        "a p to h r at acme dot com.",
    ),
    (
        "We're open Mon–Fri 9–5, Sat 10–2, closed Sun.",
        "we're open monday to friday nine to five, saturday ten to two, closed sun.",
    ),
    (
        "¿Cómo estás? ¡Muy bien! Señor Peña ate jalapeños in São Paulo.",
        "como estas? muy bien! senor pena ate jalapenos in sao paulo.",
    ),
    (
        "Pi is 3.14159..., e is 2.718...",
        "pi is three point one four one five nine. e is two point seven one eight.",
    ),
    (
        "AI/ML engineers earn $150k–$200k/yr.",
        "a i m l engineers earn one hundred and fifty to two hundred thousand dollars per year.",
    ),
    (
        "It weighs 5 lb 3 oz and is 6' 2\" tall.",
        "it weighs five pounds three ounces and is six foot two tall.",
    ),
    (
        "NASA's JWST launched on Dec. 25, 2021, at 12:20 UTC.",
        "nasa's j w s t launched on december twenty-fifth, twenty twenty one, at twelve twenty u t c.",
    ),
    (
        "The ratio of A:B is 3:2. Mix it 50/50.",
        "the ratio of a: b is three to two. mix it fifty fifty.",
    ),
    (
        "Contact: Tel. +1-202-555-0173; Fax: 202-555-0174",
        "contact: telephone plus one, two zero two, five five five, zero one seven three; fax: two "
        "zero two, five five five, zero one seven four.",
    ),
    (
        "Between 2010 and 2020, GDP grew by 2.3 percentage points. About 1 in 5 people agree.",
        "between twenty ten and twenty twenty, g d p grew by two point three percentage points. about "
        "one in five people agree.",
    ),
    (
        "In the year 1500 there were 1500 people.",
        "in the year fifteen hundred there were fifteen hundred people.",
    ),
]


@pytest.mark.parametrize(("written", "spoken"), ANSWERS, ids=range(len(ANSWERS)))
def test_answer(written: str, spoken: str) -> None:
    assert spoken_form(written) == spoken
