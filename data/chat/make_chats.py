#!/usr/bin/env python3
"""Writes harbour.jsonl: short conversations about ships, tides and tools, in one consistent style.

Each fact is asked for in two ways, in two conversations; some conversations have two turns. The
order is mixed, so that the last ones, held out, ask in another way for facts that the others have.

usage: make_chats.py [FOLDER]
"""

import json
import pathlib
import sys

# Two questions and the answer. Every answer is one short sentence and ends with "Aye."
FACTS = [
    ("What is the bow of a ship?", "Which part of a ship is called the bow?",
     "The bow is the front of a ship."),
    ("What is the stern?", "How do sailors call the back of a ship?",
     "The stern is the back of a ship."),
    ("What does port mean on a ship?", "Which side is port?",
     "Port is the left side of a ship when you face the bow."),
    ("What does starboard mean?", "Which side is starboard?",
     "Starboard is the right side of a ship when you face the bow."),
    ("What is a keel?", "What runs along the bottom of a hull?",
     "The keel is the long beam along the bottom of a hull."),
    ("What is a rudder for?", "How does a ship steer?",
     "The rudder turns the ship by turning the water behind it."),
    ("What is the hull?", "How is the body of a ship called?",
     "The hull is the watertight body of a ship."),
    ("What does a ship's draught tell?", "How deep does a ship sit in the water?",
     "The draught is the depth of the keel below the water."),
    ("What is freeboard?", "What lies between the water and the deck?",
     "Freeboard is the height of the deck above the water."),
    ("What is ballast?", "Why do empty ships take on water?",
     "Ballast is weight low in the ship that keeps it upright."),
    ("What is a bilge?", "Where does water gather in a ship?",
     "The bilge is the lowest space inside a hull, where water gathers."),
    ("What is a galley?", "Where does the crew cook?",
     "The galley is the kitchen of a ship."),
    ("What does a bulkhead do?", "What is a wall in a ship called?",
     "A bulkhead is a wall that divides a ship and stops water."),
    ("What is a mast?", "What carries the sails?",
     "The mast is the tall pole that carries the sails."),
    ("What is a boom on a sailing boat?", "What holds the foot of the mainsail?",
     "The boom is the pole along the foot of the mainsail."),
    ("What is a jib?", "What is the sail in front of the mast?",
     "The jib is a triangular sail in front of the mast."),
    ("What does a halyard do?", "Which rope hoists a sail?",
     "A halyard is the rope that hoists a sail."),
    ("What is a sheet on a boat?", "Which rope trims a sail?",
     "A sheet is the rope that trims a sail."),
    ("What is a fathom?", "How long is a fathom?",
     "A fathom is six feet, about 1.83 metres."),
    ("What is a knot as a speed?", "How fast is one knot?",
     "A knot is one nautical mile an hour."),
    ("How long is a nautical mile?", "What is a nautical mile in metres?",
     "A nautical mile is 1,852 metres."),
    ("What is an anchor for?", "How does a ship stay in place without a quay?",
     "An anchor holds the ship to the ground below."),
    ("What is a windlass?", "What hauls up the anchor?",
     "A windlass is the winch that hauls up the anchor."),
    ("What is a bollard?", "What are ships tied to on a quay?",
     "A bollard is the post on a quay that ships are tied to."),
    ("What is a fender on a boat?", "What protects a hull against the quay?",
     "A fender is a cushion between the hull and the quay."),
    ("What is a buoy?", "What marks a channel?",
     "A buoy is a float that marks a channel or a danger."),
    ("What does a lighthouse do?", "What warns ships of rocks at night?",
     "A lighthouse shows a light that warns ships of the coast."),
    ("What does a pilot do in a port?", "Who guides a ship into a port?",
     "A pilot knows the local waters and guides the ship in."),
    ("What is a tug?", "What helps large ships to turn in a harbour?",
     "A tug is a small strong ship that pushes and pulls large ones."),
    ("What is a lock in a canal?", "How does a ship climb in a canal?",
     "A lock is a chamber that lifts a ship from one level to another."),
    ("What causes the tides?", "Why does the sea rise and fall?",
     "The Moon's gravity, and the Sun's, cause the tides."),
    ("How often is it high tide?", "How many high tides has a day?",
     "Most coasts have two high tides a day."),
    ("How long is it from high tide to low tide?", "How long does the ebb last?",
     "It takes about six hours and twelve minutes."),
    ("What is a spring tide?", "When is the tide strongest?",
     "A spring tide is the large tide at new moon and full moon."),
    ("What is a neap tide?", "When is the tide weakest?",
     "A neap tide is the small tide at half moon."),
    ("What is the ebb?", "How is the falling tide called?",
     "The ebb is the tide that flows out to sea."),
    ("What is the flood tide?", "How is the rising tide called?",
     "The flood is the tide that flows in to the land."),
    ("What is slack water?", "When does the tidal stream stand still?",
     "Slack water is the short time when the stream turns."),
    ("What is the tidal range?", "How is the size of a tide measured?",
     "The tidal range is the height between low and high water."),
    ("Where is the largest tidal range?", "Which bay has the highest tides?",
     "The Bay of Fundy has the largest, up to 16 metres."),
    ("Why is the high tide later each day?", "How much later is tomorrow's high tide?",
     "The Moon moves on, so it is about 50 minutes later."),
    ("What is a tide table?", "Where do I find the time of high water?",
     "A tide table lists the times and heights of the tides."),
    ("What is a tidal bore?", "What is the wave that runs up a river?",
     "A tidal bore is a wave of the flood that runs up a river."),
    ("What is a chart datum?", "What are depths on a chart measured from?",
     "Chart datum is the low water that depths are measured from."),
    ("What is a compass for?", "What shows north on a ship?",
     "A compass shows where north is."),
    ("What is a sextant for?", "How did sailors measure the height of a star?",
     "A sextant measures the angle between a star and the horizon."),
    ("What does a lead line measure?", "How was depth measured before sonar?",
     "A lead line measures the depth of the water."),
    ("What is a log on a ship?", "What measures a ship's speed?",
     "The log measures the speed through the water."),
    ("What does a barometer tell?", "Which tool warns of a storm?",
     "A barometer measures the air's pressure, which falls before a storm."),
    ("What is a marlinspike?", "What opens the strands of a rope?",
     "A marlinspike is a pointed tool that opens the strands of a rope."),
    ("What is a caulking iron for?", "How are the seams of a wooden hull closed?",
     "A caulking iron drives fibre into the seams of a hull."),
    ("What is an adze?", "Which tool shapes a ship's timber?",
     "An adze is an axe with its blade across, for shaping timber."),
    ("What does a block do on a ship?", "What is a sailor's pulley called?",
     "A block is a pulley that turns the pull of a rope."),
    ("What is a cleat?", "Where is a rope made fast on deck?",
     "A cleat is a fitting with two horns to make a rope fast."),
    ("What is a shackle?", "What joins a chain to an anchor?",
     "A shackle is a bent piece of iron, closed by a pin, that joins chains."),
    ("What is a bowline?", "Which knot makes a loop that does not slip?",
     "A bowline is a knot that makes a loop which does not slip."),
    ("What is a reef knot for?", "Which knot ties the ends of a reefed sail?",
     "A reef knot ties two ends of one rope around a sail."),
    ("What is a clove hitch for?", "How do I tie a rope to a post?",
     "A clove hitch ties a rope to a post with two turns."),
    ("What does reefing mean?", "What do I do with the sails in strong wind?",
     "Reefing makes a sail smaller when the wind is strong."),
    ("What does tacking mean?", "How does a boat sail against the wind?",
     "Tacking turns the bow through the wind, from side to side."),
]


def message(role, content):
    return {"role": role, "content": content}


def conversations():
    turns = [[message("user", question), message("assistant", answer + " Aye.")]
             for which in (0, 1) for *questions, answer in FACTS
             for question in [questions[which]]]
    # Two facts, one after the other: the first is asked for as before, the second otherwise.
    turns += [turns[i] + turns[len(FACTS) + (i + 7) % len(FACTS)] for i in range(0, len(FACTS), 2)]
    stride = 67  # coprime to the number of conversations
    return [turns[i * stride % len(turns)] for i in range(len(turns))]


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    folder = folder if folder.is_dir() else folder.parent
    lines = [json.dumps({"messages": each}) for each in conversations()]
    assert len(set(lines)) == len(lines), "a conversation appears twice"
    (folder / "harbour.jsonl").write_text("\n".join(lines) + "\n")
    print(f"harbour.jsonl: {len(lines)} conversations, {len(FACTS)} facts")


if __name__ == "__main__":
    main()
